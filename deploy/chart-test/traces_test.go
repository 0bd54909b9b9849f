package charttest

import "testing"

// Traces are of gateways and workers, and of neither the migration nor retention; a ratio of zero is one.
func TestGatewaysAndWorkersExportTraces(t *testing.T) {
	rendered, err := render(t, parseValues(t, `
retention: {enabled: true}
traces: {endpoint: "http://collector:4318", sampleRatio: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	loads := workloads(decodeAll(t, rendered))
	if len(loads) != 5 {
		t.Fatalf("%d workloads", len(loads))
	}
	for _, load := range loads {
		want := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_SAMPLER": "", "OTEL_TRACES_SAMPLER_ARG": ""}
		if load.serves {
			want = map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
				"OTEL_TRACES_SAMPLER":         "parentbased_traceidratio",
				"OTEL_TRACES_SAMPLER_ARG":     "0",
			}
		}
		for name, value := range want {
			if found := environment(load.pod, name); found != value {
				t.Errorf("%s: %s is %q instead of %q", load.name, name, found, value)
			}
		}
	}
}
