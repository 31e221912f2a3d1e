package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const reportedPage = "../docs/reported.md"

// reports are how many reports the page lists.
const reports = 36

// Every report in the page is there once, in order, with tests that exist or a reason to have none; and
// every test that was written for the page is in it.
func TestReportedIssuesHaveTests(t *testing.T) {
	page, err := os.ReadFile(reportedPage)
	if err != nil {
		t.Fatal(err)
	}
	shown, others, ok := strings.Cut(string(page), "Two reports are not ours")
	if !ok {
		t.Fatal("the page doesn't say which reports have no test")
	}
	listed := map[int]bool{}
	for _, row := range tableRows(t, shown) {
		listed[row.number] = true
		tests := namedTest.FindAllStringSubmatch(row.cells[4], -1)
		if len(tests) == 0 {
			t.Errorf("report %d names no test", row.number)
		}
		for _, m := range tests {
			if !strings.Contains(testSource(t, m[1]), "\nfunc "+m[2]+"(t *testing.T)") {
				t.Errorf("report %d: there is no %s in %s", row.number, m[2], m[1])
			}
		}
	}
	for _, row := range tableRows(t, others) {
		if listed[row.number] || len(row.cells[3]) < 40 {
			t.Errorf("report %d is there twice, or without a reason to have no test", row.number)
		}
		listed[row.number] = true
	}
	for n := 1; n <= reports; n++ {
		if !listed[n] {
			t.Errorf("report %d is missing", n)
		}
	}
	if len(listed) != reports {
		t.Errorf("%d reports, want %d", len(listed), reports)
	}
	everyReportedTest(t, shown)
}

// namedTest is a test as the page names it: `folder.TestName`.
var namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`")

// tableRow is a numbered line of a table.
type tableRow struct {
	number int
	cells  []string
}

func tableRows(t *testing.T, page string) []tableRow {
	t.Helper()
	var rows []tableRow
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		n, err := strconv.Atoi(strings.TrimSpace(cells[0]))
		if err != nil {
			continue
		}
		if len(rows) > 0 && n <= rows[len(rows)-1].number {
			t.Errorf("report %d stands after %d", n, rows[len(rows)-1].number)
		}
		rows = append(rows, tableRow{n, cells})
	}
	if len(rows) == 0 {
		t.Fatal("no reports")
	}
	return rows
}

// testSource is the text of all test files in a folder of the repository.
func testSource(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// everyReportedTest looks in files named reported_test.go beside this one for tests that the page forgot.
func everyReportedTest(t *testing.T, page string) {
	t.Helper()
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	for _, folder := range []string{"alerts/output", "alerts/ruletest", "dashboards/boards"} {
		text, err := os.ReadFile(filepath.Join("..", folder, "reported_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			if name := folder + "." + m[1]; !strings.Contains(page, "`"+name+"`") {
				t.Errorf("%s is not in %s", name, reportedPage)
			}
		}
	}
}
