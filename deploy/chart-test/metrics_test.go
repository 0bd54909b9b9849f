package charttest

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A metric is what processes show at /metrics: its labels, and the words that its labels may have.
type metric struct {
	kind   string
	labels []string
	// words are the values that the documents name; a label without any takes every value.
	words map[string]bool
	// bounds are the upper bounds of a histogram's buckets, as the label le has them.
	bounds []string
}

// What Prometheus adds to each series when it asks a process, as deploy/chart/templates/monitoring.yaml says.
var ofScrape = []string{"job", "namespace", "pod", "instance", "container"}

// A row of a table of metrics: `name` | `label`, `label` | what it says.
var metricRow = regexp.MustCompile("(?m)^\\| `((?:everturn|temporal)_\\w+)` \\| ([^|]*)\\| (.+) \\|$")
var quoted = regexp.MustCompile("[`\"]([^`\"]+)[`\"]")

// knownMetrics reads docs/operate/health.md. A test in Rust keeps its rows of Everturn's own metrics equal to the code; those
// of the SDK say where they are from.
func knownMetrics(t *testing.T) map[string]metric {
	t.Helper()
	kinds, bounds := ofTheCode(t)
	words := wordsOfTheCode(t)
	known := map[string]metric{"up": {kind: "gauge", labels: ofScrape}}
	for _, row := range metricRow.FindAllStringSubmatch(read(t, "../../docs/operate/health.md"), -1) {
		found := metric{kind: kinds[row[1]], bounds: bounds[row[1]], words: maps.Clone(words)}
		for _, label := range quoted.FindAllStringSubmatch(row[2], -1) {
			found.labels = append(found.labels, label[1])
		}
		for _, word := range quoted.FindAllStringSubmatch(row[3], -1) {
			found.words[word[1]] = true
		}
		if strings.HasPrefix(row[1], "temporal_") {
			found.labels = append(found.labels, "task_queue")
			found.kind, found.bounds = kindOfTheSDK(row[1]), bounds["OF_ENGINE"]
		}
		found.labels = append(found.labels, ofScrape...)
		known[row[1]] = found
	}
	if len(known) < 30 {
		t.Fatalf("docs/operate/health.md has only %d metrics", len(known))
	}
	return known
}

// series finds the metric of a series: of a histogram, a query names its buckets, its sum or its count.
func series(known map[string]metric, name string) (metric, bool) {
	if found, is := known[name]; is && found.kind != "histogram" {
		return found, true
	}
	for _, ending := range []string{"_bucket", "_sum", "_count"} {
		base, has := strings.CutSuffix(name, ending)
		found, is := known[base]
		if !has || !is || found.kind != "histogram" {
			continue
		}
		found.kind = "counter"
		if ending == "_bucket" {
			found.labels = append(slices.Clone(found.labels), "le")
		}
		return found, true
	}
	return metric{}, false
}

func kindOfTheSDK(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_seconds"):
		return "histogram"
	}
	return "gauge"
}

var (
	declared    = regexp.MustCompile(`(?s)Metric::(counter|amount|gauge|histogram)\(\s*"(\w+)",(.+?)\);`)
	listOfBound = regexp.MustCompile(`(?s)const (\w+): &\[f64\] = &\[(.+?)\];`)
	lastWord    = regexp.MustCompile(`(\w+),\s*$`)
)

// ofTheCode reads what no document says: how each metric counts, and the bounds of the histograms. Bounds are also there by
// the name of their list.
func ofTheCode(t *testing.T) (kinds map[string]string, bounds map[string][]string) {
	t.Helper()
	text := read(t, "../../worker/src/telemetry/exporter.rs")
	for _, name := range []string{"metric", "names", "turns", "mcp", "gateway", "process"} {
		text += read(t, "../../telemetry/src/"+name+".rs")
	}
	kinds, bounds = map[string]string{}, map[string][]string{}
	for _, list := range listOfBound.FindAllStringSubmatch(text, -1) {
		for number := range strings.SplitSeq(list[2], ",") {
			number = strings.ReplaceAll(strings.TrimSpace(number), "_", "")
			if value, err := strconv.ParseFloat(number, 64); err == nil {
				bounds[list[1]] = append(bounds[list[1]], strconv.FormatFloat(value, 'f', -1, 64))
			}
		}
	}
	for _, found := range declared.FindAllStringSubmatch(text, -1) {
		kinds[found[2]] = strings.ReplaceAll(found[1], "amount", "counter")
		if list := lastWord.FindStringSubmatch(found[3]); found[1] == "histogram" && list != nil {
			bounds[found[2]] = bounds[list[1]]
		}
	}
	return kinds, bounds
}

// wordsOfTheCode are the words that labels share with the wire: states, effects, and the codes of errors.
func wordsOfTheCode(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, name := range []string{"turns", "tools"} {
		for _, word := range quoted.FindAllStringSubmatch(read(t, "../../proto/src/words/"+name+".rs"), -1) {
			words[word[1]] = true
		}
	}
	pages, err := filepath.Glob("../../docs/errors/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("where are the codes?", err)
	}
	for _, page := range pages {
		words[strings.TrimSuffix(filepath.Base(page), ".md")] = true
	}
	return words
}
