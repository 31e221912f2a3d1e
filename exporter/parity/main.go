package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kingpin/v2"
)

func main() {
	app := kingpin.New("parity", "Measures the exporter beside other programs.")
	columns := app.Command("columns", "Compare every column of vmstat and iostat with its PromQL.")
	url := columns.Flag("url", "The exporter's metrics page.").Default("http://127.0.0.1:10510/metrics").String()
	lines := columns.Flag("duration", "How long to compare.").Default("60s").Duration()
	cost := app.Command("cost", "Compare what the exporter and node_exporter use.")
	ours := cost.Flag("ours", "The exporter's binary.").Required().String()
	theirs := cost.Flag("theirs", "node_exporter's binary.").Default("prometheus-node-exporter").String()
	span := cost.Flag("duration", "How long to scrape them.").Default("10m").Duration()
	command := kingpin.MustParse(app.Parse(os.Args[1:]))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var ok bool
	var err error
	switch command {
	case columns.FullCommand():
		ok, err = compareColumns(ctx, os.Stdout, *url, *lines)
	case cost.FullCommand():
		ok, err = compareCost(ctx, os.Stdout, *ours, *theirs, *span)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(3)
	}
}
