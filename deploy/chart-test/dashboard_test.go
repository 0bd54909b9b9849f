package charttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// A dashboard has the fields of Grafana that ours uses. Any other is an error, so that a mistyped one is found.
type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Editable      bool     `json:"editable"`
	Refresh       string   `json:"refresh"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Datasource *datasource `json:"datasource"`
	Query      string      `json:"query"`
	Refresh    int         `json:"refresh"`
	Sort       int         `json:"sort"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue"`
	Current    struct {
		Text  string `json:"text"`
		Value string `json:"value"`
	} `json:"current"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Datasource  *datasource `json:"datasource"`
	GridPos     struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string   `json:"unit"`
			Min  *float64 `json:"min"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID        string `json:"refId"`
		LegendFormat string `json:"legendFormat"`
		Expr         string `json:"expr"`
	} `json:"targets"`
}

var theDatasource = datasource{"prometheus", "${datasource}"}

// readDashboard reads it as the chart installs it.
func readDashboard(t *testing.T) dashboard {
	t.Helper()
	for _, object := range decodeAll(t, renderCase(t, "everything")) {
		config, is := object.(*core.ConfigMap)
		if !is || config.Labels["grafana_dashboard"] != "1" {
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(config.Data["everturn.json"]))
		decoder.DisallowUnknownFields()
		var found dashboard
		if err := decoder.Decode(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	t.Fatal("no ConfigMap has the label of Grafana's sidecar")
	return dashboard{}
}

// chosen is an expression as Grafana sends it, with what the one who looks has chosen.
func chosen(text string) string {
	return strings.ReplaceAll(text, "$__rate_interval", "5m")
}

var (
	legend     = regexp.MustCompile(`\{\{(\w+)\}\}`)
	reference  = regexp.MustCompile(`\$(\w+)`)
	labelQuery = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

func TestPanelsOfTheDashboardNameWhatExists(t *testing.T) {
	known, board := knownMetrics(t), readDashboard(t)
	variables := []string{"__rate_interval"}
	for _, variable := range board.Templating.List {
		variables = append(variables, variable.Name)
		if variable.Type == "datasource" {
			continue
		}
		found := labelQuery.FindStringSubmatch(variable.Query)
		if found == nil || variable.Datasource == nil || *variable.Datasource != theDatasource {
			t.Errorf("the variable %s asks nobody, or nothing: %s", variable.Name, variable.Query)
			continue
		}
		set, problems := checkExpression(known, found[1])
		if len(problems) > 0 || !set[found[2]] {
			t.Errorf("the variable %s: %s: %v", variable.Name, variable.Query, problems)
		}
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			set, problems := checkExpression(known, chosen(target.Expr))
			for _, problem := range problems {
				t.Errorf("%s: %s", panel.Title, problem)
			}
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !set[label[1]] {
					t.Errorf("%s: the legend names the label %s, which the result does not have", panel.Title, label[1])
				}
			}
			for _, name := range reference.FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, name[1]) {
					t.Errorf("%s: there is no variable %s", panel.Title, name[1])
				}
			}
			if !strings.Contains(target.Expr, `namespace=~"$namespace"`) {
				t.Errorf("%s shows all namespaces", panel.Title)
			}
		}
	}
}

func TestATypoInAnyPanelIsFound(t *testing.T) {
	known := knownMetrics(t)
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			for _, typo := range typos(t, chosen(target.Expr)) {
				// The variables of the dashboard are chosen by the one who looks.
				if strings.Contains(typo, "$namespaces") || strings.Contains(typo, "$providers") || strings.Contains(typo, "$models") {
					continue
				}
				if _, problems := checkExpression(known, typo); len(problems) == 0 {
					t.Errorf("%s may be written %s", panel.Title, typo)
				}
			}
		}
	}
}

func TestPanelsHaveTheirOwnPlaces(t *testing.T) {
	taken, ids := map[string]string{}, map[int]bool{}
	for _, panel := range readDashboard(t).Panels {
		if ids[panel.ID] || panel.ID == 0 {
			t.Errorf("%s has the id %d of another panel", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		place := panel.GridPos
		if place.X+place.W > 24 || place.W == 0 || place.H == 0 {
			t.Errorf("%s does not fit the 24 columns", panel.Title)
		}
		for x := place.X; x < place.X+place.W; x++ {
			for y := place.Y; y < place.Y+place.H; y++ {
				at := fmt.Sprint(x, " ", y)
				if other, is := taken[at]; is {
					t.Fatalf("%s lies over %s", panel.Title, other)
				}
				taken[at] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		if panel.Datasource == nil || *panel.Datasource != theDatasource || panel.FieldConfig.Defaults.Unit == "" || len(panel.Targets) == 0 {
			t.Errorf("%s has no data source, no unit, or nothing to show", panel.Title)
		}
	}
}

// A metric of Everturn that no panel shows is one that nobody looks at.
func TestTheDashboardShowsEveryMetric(t *testing.T) {
	text := []byte(read(t, "../chart/files/dashboard.json"))
	for name := range knownMetrics(t) {
		if strings.HasPrefix(name, "everturn_") && !bytes.Contains(text, []byte(name)) {
			t.Errorf("no panel shows %s", name)
		}
	}
}
