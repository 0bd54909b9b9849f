package alerting

import (
	"context"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// Parser reads expressions as Prometheus does by default.
var Parser = parser.NewParser(parser.Options{})

// A Firing is an alert that fires, since when, and with which labels of its result.
type Firing struct {
	Since  time.Duration
	Labels labels.Labels
}

// NewEngine makes a query engine with the defaults of Prometheus.
func NewEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: Parser})
}

// Evaluate looks at a rule every minute until then, as Prometheus does: an alert fires when its expression has had a result
// with the same labels at each look for as long as `for` says. The first firing for each set of labels is returned.
func Evaluate(engine *promql.Engine, rule monitoring.Rule, all Series, until time.Duration) ([]Firing, error) {
	ctx := context.Background()
	inMemory := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: all.choose}}
	end := time.UnixMilli(until.Milliseconds())
	query, err := engine.NewRangeQuery(ctx, inMemory, nil, rule.Expr.String(), time.UnixMilli(0), end, Interval)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	matrix, err := query.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	var pending model.Duration
	if rule.For != nil {
		if pending, err = model.ParseDuration(string(*rule.For)); err != nil {
			return nil, err
		}
	}
	var found []Firing
	for _, result := range matrix {
		if since, fires := firstFiring(result.Floats, time.Duration(pending)); fires {
			found = append(found, Firing{since, result.Metric})
		}
	}
	return found, nil
}

func firstFiring(points []promql.FPoint, pending time.Duration) (time.Duration, bool) {
	since, last := int64(0), int64(-1)
	for _, point := range points {
		if last < 0 || point.T-last > Interval.Milliseconds() {
			since = point.T
		}
		last = point.T
		if point.T-since >= pending.Milliseconds() {
			return time.Duration(point.T) * time.Millisecond, true
		}
	}
	return 0, false
}
