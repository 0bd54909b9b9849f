// Package charttest checks what is in deploy/: it renders the Helm chart with Helm's own library, compares the objects with
// snapshots, and decodes them strictly into the types of the Kubernetes API. No cluster is needed.
package charttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// The values files of each case, a later one over the ones before it.
var cases = map[string][]string{
	"minimal":        {"values/minimal.yaml"},
	"pools":          {"values/pools.yaml"},
	"everything":     {"values/everything.yaml"},
	"controller":     {"values/controller.yaml"},
	"production":     {"../examples/production.yaml"},
	"temporal-cloud": {"../examples/production.yaml", "../examples/temporal-cloud.yaml"},
}

// A document is one object of a rendered chart, as YAML.
type document struct {
	template string
	text     string
}

// A rendering is what `helm install` would send, in the order of the templates' names, and the notes that it prints.
type rendering struct {
	documents []document
	notes     string
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir("../chart")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func readValues(t *testing.T, files ...string) chartutil.Values {
	t.Helper()
	values := chartutil.Values{}
	for _, file := range files {
		read, err := chartutil.ReadValuesFile(file)
		if err != nil {
			t.Fatal(err)
		}
		values = chartutil.CoalesceTables(read, values)
	}
	return values
}

// parseValues reads values that a test writes down, over those of the minimal installation.
func parseValues(t *testing.T, text string) chartutil.Values {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return chartutil.CoalesceTables(values, readValues(t, "values/minimal.yaml"))
}

// render does what `helm template` does. Its error is what a user of Helm would read.
func render(t *testing.T, values chartutil.Values) (rendering, error) {
	t.Helper()
	loaded := loadChart(t)
	release := chartutil.ReleaseOptions{Name: "everturn", Namespace: "agents", Revision: 1, IsInstall: true}
	top, err := chartutil.ToRenderValues(loaded, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return rendering{}, err
	}
	files, err := engine.Engine{Strict: true}.Render(loaded, top)
	if err != nil {
		return rendering{}, err
	}
	var found rendering
	for _, name := range slices.Sorted(maps.Keys(files)) {
		template := strings.TrimPrefix(name, "everturn/templates/")
		if template == "NOTES.txt" {
			found.notes = files[name]
			continue
		}
		for _, text := range separator.Split(files[name], -1) {
			if text = strings.TrimSpace(text); text != "" {
				found.documents = append(found.documents, document{template, text + "\n"})
			}
		}
	}
	return found, nil
}

func renderCase(t *testing.T, name string) rendering {
	t.Helper()
	found, err := render(t, readValues(t, cases[name]...))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return found
}

// snapshot is the text that is compared: the objects, then the notes as comments.
func (r rendering) snapshot() string {
	var text strings.Builder
	for _, document := range r.documents {
		fmt.Fprintf(&text, "---\n# %s\n%s", document.template, document.text)
	}
	text.WriteString("---\n# NOTES.txt\n")
	for line := range strings.Lines(strings.TrimSpace(r.notes) + "\n") {
		text.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	return text.String()
}

func TestObjectsAreThoseOfTheSnapshots(t *testing.T) {
	update := os.Getenv("EVERTURN_UPDATE_CHART") != ""
	for name := range cases {
		file := filepath.Join("snapshots", name+".yaml")
		got := renderCase(t, name).snapshot()
		if update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if line, ok := firstDifference(string(want), got); ok {
			t.Errorf("%s:%s\nIf the change is right, write the snapshots anew: make chart-snapshots", file, line)
		}
	}
}

func TestEachSnapshotHasACase(t *testing.T) {
	files, err := filepath.Glob("snapshots/*.yaml")
	if err != nil || len(files) != len(cases) {
		t.Errorf("%d cases, and the snapshots %v (%v)", len(cases), files, err)
	}
}

func firstDifference(want, got string) (string, bool) {
	wanted, found := strings.Split(want, "\n"), strings.Split(got, "\n")
	for at := range max(len(wanted), len(found)) {
		left, right := "(the end)", "(the end)"
		if at < len(wanted) {
			left = wanted[at]
		}
		if at < len(found) {
			right = found[at]
		}
		if left != right {
			return fmt.Sprintf("%d\n- %s\n+ %s", at+1, left, right), true
		}
	}
	return "", false
}
