package charttest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"everturn/deploy/chart-test/alerting"
)

// A checker finds what Prometheus takes without a word and answers with nothing: names of metrics, labels and values that do
// not exist, and sides of an operator that can never match.
type checker struct {
	report
	known map[string]metric
}

type labelSet map[string]bool

// checkExpression returns the labels of the result, and what is wrong.
func checkExpression(known map[string]metric, text string) (labelSet, []string) {
	expression, err := alerting.Parser.ParseExpr(text)
	if err != nil {
		return nil, []string{err.Error()}
	}
	check := checker{known: known}
	return check.labelsOf(expression), check.report
}

func (c *checker) labelsOf(expression parser.Expr) labelSet {
	switch expression := expression.(type) {
	case *parser.VectorSelector:
		return c.ofSelector(expression)
	case *parser.MatrixSelector:
		return c.labelsOf(expression.VectorSelector)
	case *parser.SubqueryExpr:
		return c.labelsOf(expression.Expr)
	case *parser.ParenExpr:
		return c.labelsOf(expression.Expr)
	case *parser.UnaryExpr:
		return c.labelsOf(expression.Expr)
	case *parser.AggregateExpr:
		return c.ofAggregate(expression)
	case *parser.BinaryExpr:
		return c.ofOperator(expression)
	case *parser.Call:
		return c.ofCall(expression)
	}
	return labelSet{}
}

func (c *checker) ofSelector(selector *parser.VectorSelector) labelSet {
	found, is := series(c.known, selector.Name)
	c.require(is, "there is no metric %q", selector.Name)
	set := labelSet{}
	for _, label := range found.labels {
		set[label] = true
	}
	for _, matcher := range selector.LabelMatchers {
		if !is || matcher.Name == labels.MetricName {
			continue
		}
		c.require(set[matcher.Name], "%s has no label %s", selector.Name, matcher.Name)
		c.checkValue(selector.Name, found, matcher)
	}
	return set
}

var plainWord = regexp.MustCompile(`^[\w.+]+$`)

// A status of HTTP, or a class of them.
var ofHTTP = regexp.MustCompile(`^[1-5](\d\d|\.\.)$`)

func (c *checker) checkValue(name string, found metric, matcher *labels.Matcher) {
	values := []string{matcher.Value}
	if matcher.Type == labels.MatchRegexp || matcher.Type == labels.MatchNotRegexp {
		values = strings.Split(matcher.Value, "|")
	}
	if matcher.Name == "le" {
		c.checkBounds(name, found, values)
		return
	}
	for _, value := range values {
		switch {
		case matcher.Name == "job":
			c.require(value == "everturn", "no job is called %s", value)
		case slices.Contains(ofScrape, matcher.Name), !plainWord.MatchString(value),
			name == "everturn_http_requests_total" && matcher.Name == "status" && ofHTTP.MatchString(value):
			// What the scrape or the one who looks chooses.
		default:
			c.require(found.words[value], "nothing says that %s has %s=%q", name, matcher.Name, value)
		}
	}
}

// checkBounds wants a whole number twice: Prometheus 3 writes 5.0 where the process and Prometheus 2 write 5.
func (c *checker) checkBounds(name string, found metric, values []string) {
	for _, value := range values {
		bound := strings.TrimSuffix(value, ".0")
		c.require(slices.Contains(found.bounds, bound) || bound == "+Inf", "%s has no bucket %s", name, value)
		if _, err := strconv.Atoi(bound); err == nil {
			both := slices.Contains(values, bound) && slices.Contains(values, bound+".0")
			c.require(both, "%s: write le=~\"%s|%s.0\", for both ways in which Prometheus writes it", name, bound, bound)
		}
	}
}

func (c *checker) ofAggregate(expression *parser.AggregateExpr) labelSet {
	inner := c.labelsOf(expression.Expr)
	set := labelSet{}
	for _, label := range expression.Grouping {
		c.require(inner[label], "%s: there is no label %s to group by", expression.Expr, label)
		set[label] = true
	}
	switch {
	case expression.Op == parser.TOPK || expression.Op == parser.BOTTOMK:
		return inner
	case expression.Without:
		return without(inner, expression.Grouping)
	}
	return set
}

func (c *checker) ofOperator(expression *parser.BinaryExpr) labelSet {
	left, right := c.labelsOf(expression.LHS), c.labelsOf(expression.RHS)
	matching := expression.VectorMatching
	if matching == nil {
		maps.Copy(left, right)
		return left
	}
	for _, label := range matching.MatchingLabels {
		both, one := left[label] && right[label], left[label] || right[label]
		c.require(both || one && !matching.On, "%s: there is no label %s to match by", expression, label)
	}
	if !matching.On && expression.Op != parser.LOR {
		// An empty label and none are the same for Prometheus, but here no label of one side alone is ever empty.
		wanted, found := without(left, matching.MatchingLabels), without(right, matching.MatchingLabels)
		c.require(maps.Equal(wanted, found), "%s: the sides have the labels %v and %v", expression, wanted, found)
	}
	switch {
	case expression.Op.IsSetOperator(), matching.Card == parser.CardManyToOne:
	case matching.On:
		left = labelSet{}
		for _, label := range matching.MatchingLabels {
			left[label] = true
		}
	default:
		left = without(left, matching.MatchingLabels)
	}
	for _, label := range matching.Include {
		c.require(right[label], "%s: there is no label %s to include", expression, label)
		left[label] = true
	}
	return left
}

func (c *checker) ofCall(call *parser.Call) labelSet {
	set := labelSet{}
	for _, argument := range call.Args {
		maps.Copy(set, c.labelsOf(argument))
	}
	switch call.Func.Name {
	case "rate", "increase", "irate":
		if matrix, is := call.Args[0].(*parser.MatrixSelector); is {
			name := matrix.VectorSelector.(*parser.VectorSelector).Name
			found, _ := series(c.known, name)
			c.require(found.kind == "counter", "%s is a %s, and has no %s", name, found.kind, call.Func.Name)
		}
	case "histogram_quantile":
		c.require(set["le"], "%s: no buckets are left", call)
		delete(set, "le")
	case "label_replace":
		set[call.Args[1].(*parser.StringLiteral).Val] = true
	}
	return set
}

func without(set labelSet, names []string) labelSet {
	rest := maps.Clone(set)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

func TestWhatPrometheusWouldSilentlyTakeIsFound(t *testing.T) {
	known := knownMetrics(t)
	for _, wrong := range []struct{ text, expect string }{
		{`sum(everturn_turns_begun)`, `no metric "everturn_turns_begun"`},
		{`everturn_turn_seconds`, `no metric "everturn_turn_seconds"`},
		{`everturn_streams_open_bucket`, `no metric`},
		{`everturn_model_calls_total{results="ok"}`, "no label results"},
		{`everturn_model_calls_total{result="fine"}`, `result="fine"`},
		{`everturn_model_calls_total{result=~"ok|fine"}`, `result="fine"`},
		{`temporal_num_pollers{poller_type="workflow"}`, `poller_type="workflow"`},
		{`everturn_save_seconds_bucket{le="0.3"}`, "no bucket 0.3"},
		{`everturn_model_call_seconds_bucket{le="30"}`, "for both ways"},
		{`everturn_model_call_seconds_bucket{le="30.0"}`, "for both ways"},
		{`up{job="everturns"}`, "no job"},
		{`sum by (models) (everturn_model_calls_total)`, "no label models to group by"},
		{`sum by (pod) (sum by (namespace) (everturn_streams_open))`, "no label pod to group by"},
		{`sum by (namespace) (everturn_streams_open) / everturn_streams_open`, "the sides have the labels"},
		{`everturn_streams_open / on (mode) everturn_live_tails`, "no label mode to match by"},
		{`rate(everturn_streams_open[5m])`, "is a gauge"},
		{`histogram_quantile(0.9, sum by (batch) (rate(everturn_save_seconds_bucket[5m])))`, "no buckets are left"},
		{`sum by (namespace (everturn_streams_open)`, "parse error"},
	} {
		_, problems := checkExpression(known, wrong.text)
		if !strings.Contains(fmt.Sprint(problems), wrong.expect) {
			t.Errorf("%s is not found to be wrong with %q: %v", wrong.text, wrong.expect, problems)
		}
	}
}
