package board

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Kind is how a panel draws.
type Kind int

// The kinds of panel.
const (
	Lines Kind = iota
	Number
	Table
	Heatmap
	States
)

// Units of Grafana.
const (
	Seconds = "s"
	Share   = "percentunit" // 0–1
	Bytes   = "bytes"
	BytesPS = "Bps"
	PerSec  = "reqps"
	Short   = "short"
	Watts   = "watt"
	Celsius = "celsius"
	OpsPS   = "ops"
	NoUnit  = "none"
)

// Panel is one picture.
type Panel struct {
	Kind          Kind
	Title         string
	Description   string // what it shows, and what to think of it
	Unit          string
	Width, Height int // of 24 columns; in rows of the grid
	Queries       []Query
	Bound         *Bound // drawn as a line
	Min, Max      *float64
	NoValue       string // what stands there without data, and why
	Columns       []Column
	Stacked       bool
}

// Query is one PromQL query of a panel.
type Query struct {
	Expr, Legend string
	Instant      bool // the newest value alone
}

// Bound is an objective's limit. Values beyond it are red.
type Bound struct {
	Value float64
	Below bool // values under it are the bad ones
}

// Column is one column of a table.
type Column struct {
	Field string // label, or "Value #A" of the first query, "Value #B" of the second …
	Title string
	Unit  string
	Bound *Bound
	Link  string // address; ${__value.raw} is the cell's text
	Wide  bool
}

const (
	green = "green"
	red   = "red"
)

func (p Panel) build(at *places) (dashboard.Panel, error) {
	pos := at.panel(p.Width, p.Height)
	id := at.id()
	switch p.Kind {
	case Number:
		return p.number(id, pos).Build()
	case Table:
		return p.table(id, pos).Build()
	case Heatmap:
		return p.heatmap(id, pos).Build()
	case States:
		return p.states(id, pos).Build()
	}
	return p.lines(id, pos).Build()
}

func (p Panel) targets(format prometheus.PromQueryFormat) []cog.Builder[variants.Dataquery] {
	list := make([]cog.Builder[variants.Dataquery], len(p.Queries))
	for i, q := range p.Queries {
		b := prometheus.NewDataqueryBuilder().Expr(q.Expr).RefId(string(rune('A' + i))).LegendFormat(q.Legend).
			Format(format).Datasource(source()).EditorMode(prometheus.QueryEditorModeCode)
		if q.Instant {
			b.Instant()
		} else {
			b.Range()
		}
		list[i] = b
	}
	return list
}

// steps are Grafana's thresholds: the first has no value, which stands for everything below.
func (b *Bound) steps() cog.Builder[dashboard.ThresholdsConfig] {
	t := dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute)
	if b == nil {
		return t.Steps([]dashboard.Threshold{{Color: green}})
	}
	under, over := green, red
	if b.Below {
		under, over = red, green
	}
	return t.Steps([]dashboard.Threshold{{Color: under}, {Color: over, Value: &b.Value}})
}

func (p Panel) lines(id uint32, pos dashboard.GridPos) *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Id(id).GridPos(pos).Title(p.Title).Description(p.Description).Datasource(source()).
		Unit(p.Unit).Targets(p.targets(prometheus.PromQueryFormatTimeSeries)).Thresholds(p.Bound.steps()).
		LineWidth(1).FillOpacity(5).ShowPoints(common.VisibilityModeNever).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
	if p.Bound != nil {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	if p.Stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(40)
	}
	if p.Min != nil {
		b.Min(*p.Min)
	}
	if p.Max != nil {
		b.Max(*p.Max)
	}
	if p.NoValue != "" {
		b.NoValue(p.NoValue)
	}
	return b
}

func (p Panel) number(id uint32, pos dashboard.GridPos) *stat.PanelBuilder {
	b := stat.NewPanelBuilder().Id(id).GridPos(pos).Title(p.Title).Description(p.Description).Datasource(source()).
		Unit(p.Unit).Targets(p.targets(prometheus.PromQueryFormatTimeSeries)).Thresholds(p.Bound.steps()).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	if p.NoValue != "" {
		b.NoValue(p.NoValue)
	}
	return b
}

func (p Panel) states(id uint32, pos dashboard.GridPos) *statetimeline.PanelBuilder {
	b := statetimeline.NewPanelBuilder().Id(id).GridPos(pos).Title(p.Title).Description(p.Description).Datasource(source()).
		Unit(p.Unit).Targets(p.targets(prometheus.PromQueryFormatTimeSeries)).Thresholds(p.Bound.steps()).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeSingle)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
	if p.NoValue != "" {
		b.NoValue(p.NoValue)
	}
	return b
}

func (p Panel) heatmap(id uint32, pos dashboard.GridPos) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().Id(id).GridPos(pos).Title(p.Title).Description(p.Description).Datasource(source()).
		Unit(p.Unit).Targets(p.targets(prometheus.PromQueryFormatHeatmap)).Calculate(false)
}

// table joins the queries into one row for each set of labels, and shows the named columns only.
func (p Panel) table(id uint32, pos dashboard.GridPos) *table.PanelBuilder {
	order, rename, keep := map[string]any{}, map[string]any{}, []any{}
	for i, c := range p.Columns {
		order[c.Field] = i
		rename[c.Field] = c.Title
		keep = append(keep, c.Field)
	}
	b := table.NewPanelBuilder().Id(id).GridPos(pos).Title(p.Title).Description(p.Description).Datasource(source()).
		Unit(p.Unit).Targets(p.targets(prometheus.PromQueryFormatTable)).ShowHeader(true).Thresholds(p.Bound.steps()).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "filterFieldsByName", Options: map[string]any{"include": map[string]any{"names": keep}}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"indexByName": order, "renameByName": rename}})
	for _, c := range p.Columns {
		b.OverrideByName(c.Title, c.properties())
	}
	if p.NoValue != "" {
		b.NoValue(p.NoValue)
	}
	return b
}

func (c Column) properties() []dashboard.DynamicConfigValue {
	list := []dashboard.DynamicConfigValue{}
	if c.Unit != "" {
		list = append(list, dashboard.DynamicConfigValue{Id: "unit", Value: c.Unit})
	}
	if c.Bound != nil {
		steps, _ := c.Bound.steps().Build() // a list of constants, which can't fail
		list = append(list,
			dashboard.DynamicConfigValue{Id: "thresholds", Value: steps},
			dashboard.DynamicConfigValue{Id: "custom.cellOptions", Value: map[string]any{"type": "color-text"}})
	}
	if c.Link != "" {
		list = append(list, dashboard.DynamicConfigValue{Id: "links", Value: []any{map[string]any{"title": c.Title, "url": c.Link, "targetBlank": true}}})
	}
	if c.Wide {
		list = append(list, dashboard.DynamicConfigValue{Id: "custom.minWidth", Value: 220})
	}
	return list
}
