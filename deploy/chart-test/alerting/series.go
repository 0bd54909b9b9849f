// Package alerting evaluates alerts on series in memory, with the query engine of Prometheus. The package of Prometheus that
// runs rules brings the clients of all clouds with it. So only the engine is used here, and what a rule adds to a query is in
// this package: `for`.
package alerting

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Interval is the time between two samples, and between two looks at the rules.
const Interval = time.Minute

// Series are series by their labels. All of them have their samples at full minutes.
type Series map[string]*line

type line struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// Begin makes a series that has no samples yet, unless it is there.
func (s Series) Begin(set labels.Labels) {
	if key := set.String(); s[key] == nil {
		s[key] = &line{labels: set}
	}
}

// Add gives a series a sample. Its samples must be added in their order.
func (s Series) Add(set labels.Labels, minute int, value float64) {
	s.Begin(set)
	key := set.String()
	s[key].samples = append(s[key].samples, sample{int64(minute) * Interval.Milliseconds(), value})
}

// choose is what Prometheus asks its storage for: the series that match, in the order of their labels.
func (s Series) choose(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &selection{}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		one := s[key]
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found.series = append(found.series, storage.NewListSeries(one.labels, one.samples))
		}
	}
	return found
}

// A sample is a value at a time, in milliseconds.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// A selection is the series that a query goes through.
type selection struct {
	series []storage.Series
	next   int
}

func (s *selection) Next() bool                        { s.next++; return s.next <= len(s.series) }
func (s *selection) At() storage.Series                { return s.series[s.next-1] }
func (s *selection) Err() error                        { return nil }
func (s *selection) Warnings() annotations.Annotations { return nil }
