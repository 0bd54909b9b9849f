package charttest

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// checkVariable fails the test when no page of docs/operate has the variable.
func checkVariable(t *testing.T, place, name string) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/operate/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("where is docs/operate?", err)
	}
	for _, page := range pages {
		if strings.Contains(read(t, page), "`"+name+"`") {
			return
		}
	}
	t.Errorf("%s: no page of docs/operate has %s", place, name)
}

func TestVariablesOfTheChartAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for name := range cases {
		for _, load := range workloads(decodeAll(t, renderCase(t, name))) {
			for _, variable := range load.pod.Spec.Containers[0].Env {
				checkVariable(t, load.name, variable.Name)
				seen[variable.Name] = true
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("only %v are set", slices.Sorted(maps.Keys(seen)))
	}
}

// leaves are the paths of all values; an empty map or list is one.
func leaves(values map[string]any, path string) []string {
	var found []string
	for key, value := range values {
		here := strings.TrimPrefix(path+"."+key, ".")
		if inner, is := value.(map[string]any); is && len(inner) > 0 {
			found = append(found, leaves(inner, here)...)
		} else {
			found = append(found, here)
		}
	}
	return found
}

func TestEachValueHasARowInTheReadme(t *testing.T) {
	values, err := chartutil.ReadValuesFile("../chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(read(t, "../chart/README.md"), -1) {
		rows[row[1]] = true
	}
	known := leaves(values, "")
	for _, value := range known {
		if !slices.ContainsFunc(enclosing(value), func(path string) bool { return rows[path] }) {
			t.Errorf("no row of README.md has %s", value)
		}
	}
	for row := range rows {
		if !slices.ContainsFunc(known, func(value string) bool { return slices.Contains(enclosing(value), row) }) {
			t.Errorf("README.md has %s, which is no value", row)
		}
	}
}

// enclosing are a path and the maps that it is in. A row may document a whole map, and `*` stands for gateway and workers.
func enclosing(path string) []string {
	var found []string
	parts := strings.Split(path, ".")
	for end := range parts {
		here := strings.Join(parts[:end+1], ".")
		found = append(found, here)
		if rest, is := cutEither(here, "gateway.", "workers."); is {
			found = append(found, "*."+rest)
		}
	}
	return found
}

func cutEither(text, one, other string) (string, bool) {
	if rest, is := strings.CutPrefix(text, one); is {
		return rest, true
	}
	return strings.CutPrefix(text, other)
}

// What stands in two files is the same.
func TestVersionsAgree(t *testing.T) {
	chart, dockerfile := loadChart(t), read(t, "../Dockerfile")
	version := first(t, `(?m)^version = "(.+)"$`, read(t, "../../Cargo.toml"))
	if chart.Metadata.AppVersion != version {
		t.Errorf("the chart is of version %s, Everturn of %s", chart.Metadata.AppVersion, version)
	}
	if image := compose(t).Services["worker"].Image; image != "everturn:"+version {
		t.Errorf("compose.yaml has the image %s, Everturn the version %s", image, version)
	}
	toolchain := first(t, `channel = "(.+)"`, read(t, "../../rust-toolchain.toml"))
	if built := first(t, `ARG RUST_VERSION=(.+)`, dockerfile); built != toolchain {
		t.Errorf("the image is built with Rust %s, and not with %s", built, toolchain)
	}
	user := fmt.Sprint(chart.Values["podSecurityContext"].(map[string]any)["runAsUser"])
	for _, file := range []string{dockerfile, read(t, "../../scripts/image-by-hand.sh")} {
		if !strings.Contains(file, user) {
			t.Errorf("the chart's user is %s, the image's another one", user)
		}
	}
}

// The image is built from the folders that .dockerignore lets in, and cargo wants all of the workspace.
func TestTheBuildOfTheImageSeesTheWorkspace(t *testing.T) {
	members := first(t, `(?s)members = \[(.+?)\]`, read(t, "../../Cargo.toml"))
	let := strings.Split(read(t, "../../.dockerignore"), "\n")
	for _, member := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(members, -1) {
		folder, _, _ := strings.Cut(member[1], "/")
		if !slices.Contains(let, "!"+folder) {
			t.Errorf(".dockerignore keeps %s from the build of the image", folder)
		}
	}
}

func first(t *testing.T, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("nothing is like %s", pattern)
	}
	return found[1]
}
