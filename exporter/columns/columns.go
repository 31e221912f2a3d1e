package columns

import (
	"fmt"
	"strings"

	"firstbreach/internal/signal"
)

// Window stands for the range of a rate in an expression, as in rate(x[W]).
const Window = "W"

// Column is one column of a tool.
type Column struct {
	Tool, Name, Unit string
	Metrics          []string
	Expr             string // PromQL, with W for the window
	Weight           string // the column, or columns joined by +, by which a mean over time is weighted; "" for time itself
}

// PromQL returns the expression over a window such as "1m".
func (c Column) PromQL(window string) string {
	return strings.ReplaceAll(c.Expr, "["+Window+"]", "["+window+"]")
}

// OfAMoment reports whether the column is a reading of the moment, rather than of the time since the
// last one.
func (c Column) OfAMoment() bool { return !strings.Contains(c.Expr, "["+Window+"]") }

// The tools.
const (
	DMon   = "nvidia-smi dmon -s pucvmet"
	VMStat = "vmstat 1"
	IOStat = "iostat -xz 1"
)

// All returns every column, in the order in which the tools print them.
func All() []Column {
	all := dmon()
	all = append(all, vmstat()...)
	return append(all, iostat()...)
}

// dmon has the columns of a driver of 2026.
func dmon() []Column {
	one := func(name, unit, metric, format string) Column {
		return Column{Tool: DMon, Name: name, Unit: unit, Metrics: []string{metric}, Expr: fmt.Sprintf(format, metric)}
	}
	const as = "%s"
	return []Column{
		{Tool: DMon, Name: "gpu", Unit: "index", Metrics: []string{signal.GPUInfo, signal.GPUUp},
			Expr: fmt.Sprintf("%s * on (uuid) group_left (gpu) %s", signal.GPUUp, signal.GPUInfo)},
		one("pwr", "W", signal.GPUPower, as),
		one("gtemp", "C", signal.GPUTemperature, as),
		one("mtemp", "C", signal.GPUMemoryTemperature, as),
		one("sm", "%", signal.GPUBusy, "100 * rate(%s[W])"),
		one("mem", "%", signal.GPUMemoryBusy, "100 * rate(%s[W])"),
		one("enc", "%", signal.GPUEncoder, "100 * %s"),
		one("dec", "%", signal.GPUDecoder, "100 * %s"),
		one("jpg", "%", signal.GPUJPEG, "100 * %s"),
		one("ofa", "%", signal.GPUOFA, "100 * %s"),
		one("mclk", "MHz", signal.GPUClock, `%s{clock="memory"} / 1e6`),
		one("pclk", "MHz", signal.GPUClock, `%s{clock="sm"} / 1e6`),
		one("pviol", "%", signal.GPUThrottle, `100 * rate(%s{reason="sw_power_cap"}[W])`),
		one("tviol", "bool", signal.GPUThrottle, `max by (uuid) (increase(%s{reason=~".*thermal"}[W]) > bool 0)`),
		one("fb", "MB", signal.GPUMemoryUsed, "%s / 2^20"),
		one("bar1", "MB", signal.GPUBAR1Used, "%s / 2^20"),
		one("ccpm", "MB", signal.GPUProtectedUsed, "%s / 2^20"),
		one("sbecc", "errs", signal.GPUECCErrors, `%s{type="corrected",scope="aggregate"}`),
		one("dbecc", "errs", signal.GPUECCErrors, `%s{type="uncorrected",scope="aggregate"}`),
		one("pci", "errs", signal.GPUPCIeReplays, as),
		one("rxpci", "MB/s", signal.GPUPCIeReceived, "rate(%s[W]) / 1e6"),
		one("txpci", "MB/s", signal.GPUPCIeTransmitted, "rate(%s[W]) / 1e6"),
	}
}

func vmstat() []Column {
	one := func(name, unit, metric, format string) Column {
		return Column{Tool: VMStat, Name: name, Unit: unit, Metrics: []string{metric}, Expr: fmt.Sprintf(format, metric)}
	}
	two := func(name, unit, format string, metrics ...string) Column {
		return Column{Tool: VMStat, Name: name, Unit: unit, Metrics: metrics, Expr: fmt.Sprintf(format, metrics[0], metrics[1])}
	}
	share := func(name, modes string) Column {
		return one(name, "%", signal.HostCPUSeconds, `100 * sum(rate(%[1]s{mode=~"`+modes+`"}[W])) / sum(rate(%[1]s[W]))`)
	}
	return []Column{
		one("r", "processes", signal.HostProcsRunning, "%s"),
		one("b", "processes", signal.HostProcsBlocked, "%s"),
		two("swpd", "KiB", "(%s - %s) / 1024", signal.HostSwapTotal, signal.HostSwapFree),
		one("free", "KiB", signal.HostMemoryFree, "%s / 1024"),
		one("buff", "KiB", signal.HostMemoryBuffers, "%s / 1024"),
		two("cache", "KiB", "(%s + %s) / 1024", signal.HostMemoryCached, signal.HostMemorySReclaimable),
		one("si", "KiB/s", signal.HostSwapIn, "rate(%s[W]) / 1024"),
		one("so", "KiB/s", signal.HostSwapOut, "rate(%s[W]) / 1024"),
		one("bi", "KiB/s", signal.HostPagedIn, "rate(%s[W]) / 1024"),
		one("bo", "KiB/s", signal.HostPagedOut, "rate(%s[W]) / 1024"),
		one("in", "1/s", signal.HostInterrupts, "rate(%s[W])"),
		one("cs", "1/s", signal.HostContextSwitches, "rate(%s[W])"),
		two("us", "%", `100 * (sum(rate(%[1]s{mode=~"user|nice"}[W])) - sum(rate(%[2]s[W]))) / sum(rate(%[1]s[W]))`,
			signal.HostCPUSeconds, signal.HostCPUGuestSeconds),
		share("sy", "system|irq|softirq"),
		share("id", "idle"),
		share("wa", "iowait"),
		share("st", "steal"),
		two("gu", "%", "100 * sum(rate(%[2]s[W])) / sum(rate(%[1]s[W]))", signal.HostCPUSeconds, signal.HostCPUGuestSeconds),
	}
}

// operation is the metrics of a kind of operation, and the letter that iostat puts before its columns.
type operation struct {
	letter, completed, bytes, merged, seconds string
}

func (o operation) columns() []Column {
	c := func(name, unit, weight, expr string, metrics ...string) Column {
		return Column{Tool: IOStat, Name: name, Unit: unit, Metrics: metrics, Expr: expr, Weight: weight}
	}
	n := "rate(" + o.completed + "[W])"
	m := "rate(" + o.merged + "[W])"
	// Without an operation there is no mean of them: 0 / 0 is not a number, where iostat prints 0.
	some := " and " + n + " > 0"
	l := o.letter
	return []Column{
		c(l+"/s", "1/s", "", n, o.completed),
		c(l+"kB/s", "KiB/s", "", "rate("+o.bytes+"[W]) / 1024", o.bytes),
		c(l+"rqm/s", "1/s", "", m, o.merged),
		c("%"+l+"rqm", "%", l+"/s+"+l+"rqm/s", "100 * "+m+" / ("+m+" + "+n+") and ("+m+" + "+n+") > 0", o.merged, o.completed),
		c(l+"_await", "ms", l+"/s", "1000 * rate("+o.seconds+"[W]) / "+n+some, o.seconds, o.completed),
		c(l+"areq-sz", "KiB", l+"/s", "rate("+o.bytes+"[W]) / "+n+" / 1024"+some, o.bytes, o.completed),
	}
}

func iostat() []Column {
	var all []Column
	for _, o := range []operation{
		{"r", signal.HostDiskReads, signal.HostDiskReadBytes, signal.HostDiskReadsMerged, signal.HostDiskReadTime},
		{"w", signal.HostDiskWrites, signal.HostDiskWrittenBytes, signal.HostDiskWritesMerged, signal.HostDiskWriteTime},
		{"d", signal.HostDiskDiscards, signal.HostDiskDiscardBytes, signal.HostDiskDiscardMerged, signal.HostDiskDiscardTime},
	} {
		all = append(all, o.columns()...)
	}
	flushes := "rate(" + signal.HostDiskFlushes + "[W])"
	return append(all,
		Column{Tool: IOStat, Name: "f/s", Unit: "1/s", Metrics: []string{signal.HostDiskFlushes}, Expr: flushes},
		Column{Tool: IOStat, Name: "f_await", Unit: "ms", Metrics: []string{signal.HostDiskFlushTime, signal.HostDiskFlushes}, Weight: "f/s",
			Expr: "1000 * rate(" + signal.HostDiskFlushTime + "[W]) / " + flushes + " and " + flushes + " > 0"},
		Column{Tool: IOStat, Name: "aqu-sz", Unit: "operations", Metrics: []string{signal.HostDiskIOTimeWeighed},
			Expr: "rate(" + signal.HostDiskIOTimeWeighed + "[W])"},
		Column{Tool: IOStat, Name: "%util", Unit: "%", Metrics: []string{signal.HostDiskIOTime},
			Expr: "clamp_max(100 * rate(" + signal.HostDiskIOTime + "[W]), 100)"},
	)
}
