// scraped-alerts says which alerts fire on the metrics that processes have shown, as if each scrape had come a minute after
// the one before. The end-to-end tests run it (tests/tests/e2e/verify/alerts).
//
//	scraped-alerts RULES SCRAPES
//
// RULES is a file of rules. SCRAPES has a line of JSON for each scrape of a process (scrape). Each alert that fires is written
// as a line of JSON (firing).
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"sigs.k8s.io/yaml"

	"everturn/deploy/chart-test/alerting"
)

// A scrape is what a process has answered at a minute.
type scrape struct {
	Minute int `json:"minute"`
	// Labels are those that Prometheus gives all series of the process.
	Labels map[string]string `json:"labels"`
	// Text is null when the process did not answer.
	Text *string `json:"text"`
}

// A firing is an alert that fires, and the minute in which it begins to.
type firing struct {
	Alert  string            `json:"alert"`
	Minute int               `json:"minute"`
	Labels map[string]string `json:"labels"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: scraped-alerts RULES SCRAPES")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rulesFile, scrapesFile string) error {
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		return err
	}
	var rules monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		return fmt.Errorf("%s: %w", rulesFile, err)
	}
	all, last, err := readScrapes(scrapesFile)
	if err != nil {
		return fmt.Errorf("%s: %w", scrapesFile, err)
	}
	engine, write := alerting.NewEngine(), json.NewEncoder(os.Stdout)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			found, err := alerting.Evaluate(engine, rule, all, time.Duration(last)*alerting.Interval)
			if err != nil {
				return fmt.Errorf("%s: %w", rule.Alert, err)
			}
			for _, fires := range found {
				if err := write.Encode(firing{rule.Alert, int(fires.Since / alerting.Interval), fires.Labels.Map()}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readScrapes makes series of all scrapes, as Prometheus does, and says which minute is the last.
func readScrapes(file string) (alerting.Series, int, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer opened.Close()
	all, last, targets := alerting.Series{}, 0, map[string]*target{}
	read := json.NewDecoder(bufio.NewReader(opened))
	for {
		var one scrape
		if err := read.Decode(&one); errors.Is(err, io.EOF) {
			return all, last, nil
		} else if err != nil {
			return nil, 0, err
		}
		if one.Minute < last {
			return nil, 0, fmt.Errorf("minute %d comes after minute %d", one.Minute, last)
		}
		last = one.Minute
		set := labels.FromMap(one.Labels)
		if targets[set.String()] == nil {
			targets[set.String()] = &target{labels: set}
		}
		if err := targets[set.String()].add(all, one); err != nil {
			return nil, 0, err
		}
	}
}

// A target is a process that is scraped.
type target struct {
	labels labels.Labels
	// shown are the series of its last scrape.
	shown map[string]labels.Labels
}

// add gives the series of a scrape their values, and `up`. A series that is no longer there ends.
func (t *target) add(all alerting.Series, one scrape) error {
	up, shown := 0.0, map[string]labels.Labels{}
	if one.Text != nil {
		up = 1
		parser := textparse.NewPromParser([]byte(*one.Text), labels.NewSymbolTable(), false)
		for {
			entry, err := parser.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			if entry != textparse.EntrySeries {
				continue
			}
			var exposed labels.Labels
			parser.Labels(&exposed)
			set := t.label(exposed)
			_, _, number := parser.Series()
			all.Add(set, one.Minute, number)
			shown[set.String()] = set
		}
	}
	all.Add(t.label(labels.FromStrings(model.MetricNameLabel, "up")), one.Minute, up)
	for _, key := range slices.Sorted(maps.Keys(t.shown)) {
		if _, is := shown[key]; !is {
			all.Add(t.shown[key], one.Minute, math.Float64frombits(value.StaleNaN))
		}
	}
	t.shown = shown
	return nil
}

// label gives a series the labels of its process. A label of the series that is called like one of these is renamed.
func (t *target) label(exposed labels.Labels) labels.Labels {
	set := labels.NewBuilder(exposed)
	t.labels.Range(func(of labels.Label) {
		if own := exposed.Get(of.Name); own != "" {
			set.Set(model.ExportedLabelPrefix+of.Name, own)
		}
		set.Set(of.Name, of.Value)
	})
	return set.Labels()
}
