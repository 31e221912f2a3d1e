package columns

import (
	"fmt"
	"strings"
)

// Page renders the columns as Markdown.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Columns of dmon, vmstat and iostat

Every column of the three tools, the metric of the exporter that has it, and the PromQL that gives it. ` + "`W`" + ` is the window
to look at; with ` + "`W`" + ` = 1s × the tool's interval it is the tool's own number. This page is printed from ` + "`exporter/columns`" + `;
a test parses each expression and checks each metric against the catalogue.

- ` + "`sm` and `mem`" + ` come from the driver's sample buffer, so that bursts between two scrapes count.
  ` + "`100 * nvidia_gpu_utilization_ratio`" + ` is the driver's value of the moment, as dmon prints it.
- ` + "`sbecc`, `dbecc` and `pci`" + ` are absolute numbers in dmon; ` + "`increase(x[W])`" + ` gives the new ones.
- ` + "`rxpci` and `txpci`" + ` need a driver with byte counters. Without them, ` + "`--collector.gpu.pcie-throughput`" + ` measures
  ` + "`nvidia_gpu_pcie_receive_bytes_per_second` and `nvidia_gpu_pcie_transmit_bytes_per_second`" + ` over 20 ms, as dmon does.
- What dmon prints as ` + "`-`" + ` is absent. With MIG on, that is ` + "`sm` to `ofa`" + `.
- vmstat's ` + "`r`" + ` counts the reader itself. ` + "`gu`" + ` is printed from procps 4.0.4 on.
- ` + "`iostat -z`" + ` leaves out idle devices; the exporter doesn't, or their first operation would be no increase. Add ` + "`> 0`" + `.
- A mean over no operation is absent where iostat prints 0.
`)
	tool := ""
	for _, c := range All() {
		if c.Tool != tool {
			tool = c.Tool
			fmt.Fprintf(&b, "\n## `%s`\n| column | unit | metric | PromQL |\n|---|---|---|---|\n", tool)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | `%s` |\n", c.Name, c.Unit, strings.Join(c.Metrics, "`, `"), strings.ReplaceAll(c.Expr, "|", `\|`))
	}
	return b.String()
}
