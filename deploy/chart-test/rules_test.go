package charttest

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"

	"everturn/deploy/chart-test/alerting"
)

// alerts are the rules as the chart installs them, by their names.
func alerts(t *testing.T) map[string]monitoring.Rule {
	t.Helper()
	found := map[string]monitoring.Rule{}
	for _, object := range decodeAll(t, renderCase(t, "everything")) {
		rules, is := object.(*monitoring.PrometheusRule)
		if !is {
			continue
		}
		for _, group := range rules.Spec.Groups {
			for _, rule := range group.Rules {
				if _, twice := found[rule.Alert]; twice || rule.Alert == "" {
					t.Fatalf("a rule is called %q, and is not the only one or no alert", rule.Alert)
				}
				found[rule.Alert] = rule
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("the chart has no alerts")
	}
	return found
}

func TestAlertsNameWhatExists(t *testing.T) {
	known := knownMetrics(t)
	for name, rule := range alerts(t) {
		set, problems := checkExpression(known, rule.Expr.String())
		for _, problem := range problems {
			t.Errorf("%s: %s", name, problem)
		}
		// An alert without its installation cannot be told from that of another one.
		if !set["namespace"] {
			t.Errorf("%s does not say in which namespace it is", name)
		}
	}
}

// TestATypoInAnyExpressionIsFound mistypes each metric, each label and each plain value of each alert, one at a time.
func TestATypoInAnyExpressionIsFound(t *testing.T) {
	known := knownMetrics(t)
	count := 0
	for name, rule := range alerts(t) {
		for _, typo := range typos(t, rule.Expr.String()) {
			count++
			if _, problems := checkExpression(known, typo); len(problems) == 0 {
				t.Errorf("%s may be written %s", name, typo)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d typos were made", count)
	}
}

var word = regexp.MustCompile(`[a-z]\w+`)

// typos are the expressions with one word changed that is the name of a metric or of a label, or the value of one. Words of
// the language, and the names that label_replace gives, are left.
func typos(t *testing.T, text string) []string {
	t.Helper()
	named := map[string]bool{}
	expression, err := alerting.Parser.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			named[node.Name] = true
			for _, matcher := range node.LabelMatchers {
				named[matcher.Name] = true
				for _, value := range word.FindAllString(matcher.Value, -1) {
					named[value] = true
				}
			}
		case *parser.AggregateExpr:
			for _, label := range node.Grouping {
				named[label] = true
			}
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				for _, label := range node.VectorMatching.MatchingLabels {
					named[label] = true
				}
			}
		}
		return nil
	})
	var found []string
	for _, place := range word.FindAllStringIndex(text, -1) {
		if named[text[place[0]:place[1]]] {
			found = append(found, text[:place[1]]+"s"+text[place[1]:])
		}
	}
	return found
}

// field is what an annotation says of the labels.
var field = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAnnotationsOfAlertsCanBeRead(t *testing.T) {
	known := knownMetrics(t)
	for name, rule := range alerts(t) {
		set, _ := checkExpression(known, rule.Expr.String())
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", name, severity)
		}
		for _, wanted := range []string{"summary", "description", "runbook_url"} {
			text := rule.Annotations[wanted]
			if text == "" {
				t.Errorf("%s has no %s", name, wanted)
			}
			for _, used := range field.FindAllStringSubmatch(text, -1) {
				if !set[used[1]] {
					t.Errorf("%s: its %s names the label %s, which the result does not have", name, wanted, used[1])
				}
			}
			if said, err := expand(text, map[string]string{"namespace": "agents"}, 0.25); err != nil {
				t.Errorf("%s: its %s cannot be read: %v in %s", name, wanted, err, said)
			}
		}
	}
}

// expand writes an annotation as Prometheus does.
func expand(text string, labels map[string]string, value float64) (string, error) {
	data := template.AlertTemplateData(labels, nil, "", promql.Sample{F: value})
	text = "{{$labels := .Labels}}{{$value := .Value}}" + text
	return template.NewTemplateExpander(context.Background(), text, "alert", data, model.Time(0), nil, &url.URL{}, nil).Expand()
}

const alertsPage = "../../docs/operate/alerts.md"

func TestEachAlertHasASectionAndEachSectionAnAlert(t *testing.T) {
	sections := map[string]string{}
	for _, part := range strings.Split(read(t, alertsPage), "\n### ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		sections[title] = body
	}
	found := alerts(t)
	for name, rule := range found {
		if got, want := rule.Annotations["runbook_url"], "docs/operate/alerts.md#"+strings.ToLower(name); got != want {
			t.Errorf("%s has the runbook_url %s instead of %s", name, got, want)
		}
		for _, wanted := range []string{"**Look at.**", "**Do.**", "**Meanwhile.**"} {
			if !strings.Contains(sections[name], wanted) {
				t.Errorf("the section %s of %s does not say: %s", name, alertsPage, wanted)
			}
		}
	}
	for title := range sections {
		if _, is := found[title]; !is {
			t.Errorf("%s has a section %s, and there is no such alert", alertsPage, title)
		}
	}
}

func TestWordsOfTheRulesFollowTheValues(t *testing.T) {
	for _, given := range []struct{ values, expect string }{
		{"prometheusRule: {enabled: true}", "runbook_url: docs/operate/alerts.md#everturnprocessdown\n"},
		{
			"prometheusRule: {enabled: true, runbookBase: 'https://example.com/everturn/'}",
			"runbook_url: https://example.com/everturn/docs/operate/alerts.md#everturnprocessdown\n",
		},
		{"prometheusRule: {enabled: true, usdPerHour: 2.5}", "(increase(everturn_cost_usd_total[1h])) > 2.5)\n"},
		{"prometheusRule: {enabled: true, approvalHours: 24}", "(everturn_approvals_oldest_seconds) > 24 * 3600)\n"},
		{"prometheusRule: {enabled: true}", "everturn_streams_open > 0.8 * 10000\n"},
		{
			"{prometheusRule: {enabled: true}, config: \"[auth]\\nrequired = true\\n[gateway]\\nmax_streams = 2_500\"}",
			"everturn_streams_open > 0.8 * 2500\n",
		},
	} {
		rendered, err := render(t, parseValues(t, given.values))
		if err != nil {
			t.Errorf("%s: %v", given.values, err)
			continue
		}
		if !strings.Contains(rendered.snapshot(), given.expect) {
			t.Errorf("%s: %q is not there", given.values, given.expect)
		}
	}
}

// What the page says to ask Prometheus can be asked.
func TestQueriesOfThePageNameWhatExists(t *testing.T) {
	known := knownMetrics(t)
	queries := regexp.MustCompile("(?s)```promql\n(.+?)```").FindAllStringSubmatch(read(t, alertsPage), -1)
	if len(queries) < 3 {
		t.Errorf("only %d queries were found", len(queries))
	}
	for _, query := range queries {
		if _, problems := checkExpression(known, query[1]); len(problems) > 0 {
			t.Errorf("%s: %v", query[1], problems)
		}
	}
}
