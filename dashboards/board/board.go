package board

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Tag is on every generated dashboard: by it they link to each other, and a generated file is known.
const Tag = "firstbreach"

// Board is one dashboard.
type Board struct {
	UID, Title, Description string
	From                    string // beginning of the time range, such as now-6h
	Variables               []Variable
	Annotations             []Annotation
	Rows                    []Row
}

// Row is a heading with panels under it.
type Row struct {
	Title  string
	Panels []Panel
}

// columns is the width of Grafana's grid.
const columns = 24

// source is the datasource variable, to which every query refers: a fixed uid would be another
// Grafana's.
func source() common.DataSourceRef {
	kind, uid := "prometheus", "${"+datasource+"}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// JSON prints the dashboard. The same description gives the same bytes.
func (b Board) JSON() ([]byte, error) {
	d := dashboard.NewDashboardBuilder(b.Title).Uid(b.UID).Description(b.Description).Tags([]string{Tag}).
		Time(b.From, "now").Refresh("30s").Timezone("browser").Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("firstbreach").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{Tag}).AsDropdown(true).KeepTime(true).IncludeVars(true))
	d.WithVariable(datasourceVariable())
	for _, v := range b.Variables {
		d.WithVariable(v.build())
	}
	for _, a := range b.Annotations {
		d.Annotation(a.build())
	}
	p := &places{}
	for _, r := range b.Rows {
		d.WithRow(dashboard.NewRowBuilder(r.Title).Id(p.id()).GridPos(p.row()))
		for _, panel := range r.Panels {
			built, err := panel.build(p)
			if err != nil {
				return nil, fmt.Errorf("dashboard %s, panel %q: %w", b.UID, panel.Title, err)
			}
			d.WithPanel(ready{built})
		}
	}
	built, err := d.Build()
	if err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", b.UID, err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(built); err != nil {
		return nil, fmt.Errorf("dashboard %s: %w", b.UID, err)
	}
	return out.Bytes(), nil
}

// ready is a panel that is built already.
type ready struct{ panel dashboard.Panel }

// Build returns the panel.
func (r ready) Build() (dashboard.Panel, error) { return r.panel, nil }

// places hands out ids and grid positions: from left to right, a new line where a panel doesn't fit.
type places struct {
	last       uint32
	x, y, line int // line is the height of the current line
}

func (p *places) id() uint32 { p.last++; return p.last }

func (p *places) row() dashboard.GridPos {
	p.wrap()
	pos := dashboard.GridPos{X: 0, Y: uint32(p.y), W: columns, H: 1}
	p.y++
	return pos
}

func (p *places) panel(width, height int) dashboard.GridPos {
	if p.x+width > columns {
		p.wrap()
	}
	pos := dashboard.GridPos{X: uint32(p.x), Y: uint32(p.y), W: uint32(width), H: uint32(height)}
	p.x += width
	p.line = max(p.line, height)
	return pos
}

func (p *places) wrap() { p.x, p.y, p.line = 0, p.y+p.line, 0 }
