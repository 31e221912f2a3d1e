package board

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// datasource is the name of the variable that every query's datasource is.
const datasource = "datasource"

// Variable is a choice at the head of a dashboard.
type Variable struct {
	Name, Label string
	Query       string // label_values(series, label)
	Single      bool   // one value and no "all"
	AllValue    string // what "all" stands for; ".+" where it is not set
}

func datasourceVariable() cog.Builder[dashboard.VariableModel] {
	return dashboard.NewDatasourceVariableBuilder(datasource).Label("Data source").Type("prometheus")
}

func (v Variable) build() cog.Builder[dashboard.VariableModel] {
	all := v.AllValue
	if all == "" {
		all = ".+"
	}
	b := dashboard.NewQueryVariableBuilder(v.Name).Label(v.Label).Datasource(source()).
		Query(dashboard.StringOrMap{String: &v.Query}).Definition(v.Query).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc)
	if v.Single {
		return b.Sort(dashboard.VariableSortNaturalDesc)
	}
	return b.Multi(true).IncludeAll(true).AllValue(all).Current(dashboard.VariableOption{
		Text: dashboard.StringOrArrayOfString{String: cog.ToPtr("All")}, Value: dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")},
	})
}

// Annotation marks moments over all panels.
type Annotation struct {
	Name, Expr, Title, Text string
	Tags                    string // labels, separated by commas
	Color                   string
	ValueIsTime             bool // the series' value is the moment, in milliseconds
}

func (a Annotation) build() cog.Builder[dashboard.AnnotationQuery] {
	b := dashboard.NewAnnotationQueryBuilder().Name(a.Name).Datasource(source()).Enable(true).Expr(a.Expr).
		TitleFormat(a.Title).TextFormat(a.Text).TagKeys(a.Tags).IconColor(a.Color)
	if a.ValueIsTime {
		b.UseValueForTime(true)
	}
	return b
}
