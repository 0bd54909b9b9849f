package charttest

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

func TestWrongValuesAreRefusedWithAReason(t *testing.T) {
	for _, wrong := range []struct{ values, expect string }{
		{"gateway: {replica: 3}", "additional properties 'replica' not allowed"},
		{"workers: {pools: {tools: {replica: 3}}}", "additional properties 'replica' not allowed"},
		{"workers: {pools: {Tools: {}}}", "does not match pattern"},
		{"gateway: {replicas: many}", "got string, want integer"},
		{"log: {format: xml}", "value must be one of 'json', 'text'"},
		{"temporal: {address: \"https://example.com\"}", "does not match pattern"},
		{"workers: {keda: {minReplicas: 0}}", "minimum: got 0, want 1"},
		{"gateway: {resources: {limits: {memory: null}}}", "missing property 'memory'"},
		{"database: {existingSecret: \"\"}", "database.existingSecret is missing: name a Secret"},
		{"migration: {database: {url: secret}}", "additional properties 'url' not allowed"},
		{"migration: {database: {existingSecret: \"postgres://a\"}}", "does not match pattern"},
		{"temporal: {address: \"\"}", "temporal.address is missing"},
		{
			"temporal: {apiKey: {existingSecret: a}, tls: {clientSecret: b}}",
			"Temporal takes an API key or a client certificate",
		},
		{"temporal: {tls: {enabled: false}}", "temporal.address would be reached without TLS"},
		{"allowPlaintext: [postgres]", "value must be one of 'database', 'redis', 'temporal'"},
		{"config: \"\"", "no `required = true` under [auth]"},
		{"gateway: {ingress: {enabled: true}}", "config has no `trusted_proxies` under [gateway]"},
		{"{gateway: {ingress: {enabled: true}}, config: \"[auth]\\nrequired = true\\n[gateway]\\ntrusted_proxies = []\"}", "set `trusted_proxies` to the network"},
		{"gateway: {httpRoute: {enabled: true}}", "gateway.httpRoute.enabled, but config has no `trusted_proxies`"},
		{"gateway: {insecureNoAuth: true, httpRoute: {enabled: true}}", "gateway.httpRoute.parentRefs is empty"},
		{"gateway: {ingress: {controller: traefik}}", "value must be one of '', 'nginx', 'alb'"},
		{"extraObjects: [1]", "got number, want"},
		{"config: \"[auth\"", "config is not a valid everturn.toml"},
		{config("graceful_shutdown = '20 parsecs'"), `the duration "20 parsecs" is not understood`},
		{"existingConfigMap: mine", "gateway.terminationGracePeriodSeconds must be set with existingConfigMap"},
		{
			"{existingConfigMap: mine, gateway: {terminationGracePeriodSeconds: 30}}",
			"workers.terminationGracePeriodSeconds must be set with existingConfigMap",
		},
		{
			"gateway: {terminationGracePeriodSeconds: 19}",
			"gateway.terminationGracePeriodSeconds is 19, and must be at least 20",
		},
		{
			"workers: {pools: {tools: {terminationGracePeriodSeconds: 84}}}",
			"workers.terminationGracePeriodSeconds is 84, and must be at least 85",
		},
		{
			"workers: {keda: {enabled: true}, autoscaling: {enabled: true}}",
			"both would set its replicas",
		},
		{
			"{workerController: {enabled: true}, workers: {keda: {enabled: true}}}",
			"scale them with a WorkerResourceTemplate",
		},
		{
			"{workerController: {enabled: true}, workers: {pools: {one: {}, two: {}}}}",
			"workerController takes one pool",
		},
		{"workers: {only: llm}", "value must be one of '', 'workflows', 'models', 'tools'"},
		{"workers: {pools: {one: {only: tool}}}", "value must be one of '', 'workflows', 'models', 'tools'"},
		{"workers: {only: workflows}", "no pool does the models: turns would wait for ever"},
		{"workers: {pools: {a: {only: workflows}, b: {only: models}, c: {}}}", "no pool does the tools: turns would wait for ever"},
		{"workers: {only: models, pools: {a: {only: tools}, b: {}, c: {only: \"\"}}}", "no pool does the workflows"},
		{
			"{workerController: {enabled: true}, workers: {pools: {a: {only: workflows}, b: {only: models}, c: {only: tools}}}}",
			"that pool has to do all kinds of work",
		},
		{"agents: null", "there is no agent, so no worker would start"},
		{"agents: {default.toml: null, default.md: null, prompt.md: x}", "there is no agent, so no worker would start"},
		{"agents: {a.toml: \"[agents\"}", "agents: a.toml is not valid TOML"},
		{"agents: {..data: x}", "does not match pattern"},
		{"agents: {a.toml: {agents: {}}}", "got object, want string"},
		{"existingAgentsConfigMap: mine", "agents and existingAgentsConfigMap are both set"},
		{"traces: {endpoint: \"collector:4318\"}", "does not match pattern"},
		{"traces: {endpoint: \"http://c:4318\", sampleRatio: 1.01}", "maximum: got 1.01, want 1"},
		{"traces: {endpoint: \"http://c:4318\", headers: {}}", "additional properties 'headers' not allowed"},
		{"traces: {content: true}", "traces.endpoint is missing"},
		{"traces: {sampleRatio: 0}", "traces.endpoint is missing"},
		{"traces: {headersSecret: {name: collector}}", "traces.endpoint is missing"},
	} {
		_, err := render(t, parseValues(t, wrong.values))
		if err == nil {
			t.Errorf("%s: is not refused", wrong.values)
		} else if !strings.Contains(err.Error(), wrong.expect) {
			t.Errorf("%s: the reason is not %q but %v", wrong.values, wrong.expect, err)
		}
	}
}

func TestAnIngressNeedsTrustedProxiesWhereTheChartCanReadThem(t *testing.T) {
	const proxies = "[auth]\\nrequired = true\\n[gateway]\\ntrusted_proxies = ['10.0.0.0/8']"
	for _, values := range []string{
		"{gateway: {ingress: {enabled: true}}, config: \"" + proxies + "\"}",
		"{gateway: {ingress: {enabled: true}, insecureNoAuth: true}}",
		"{gateway: {ingress: {enabled: true}, terminationGracePeriodSeconds: 30}, workers: {terminationGracePeriodSeconds: 120}, existingConfigMap: mine}",
	} {
		if _, err := render(t, parseValues(t, values)); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// config is a value with an everturn.toml whose [worker] has one more line.
func config(line string) string {
	return fmt.Sprintf("config: |\n  [auth]\n  required = true\n  [worker]\n  %s\n", line)
}

func TestPodsHaveMoreTimeToStopThanTheConfigurationTakes(t *testing.T) {
	for _, given := range []struct {
		values          string
		gateway, worker int64
	}{
		// drain 5 s, shutdown_grace 10 s and 5 s; graceful_shutdown of the chart's own configuration, 75 s, and 10 s.
		{"{}", 20, 85},
		{"config: \"[auth]\\nrequired = true\"", 20, 30},
		{config("graceful_shutdown = '1m 30s'"), 20, 100},
		{config("graceful_shutdown = '1h'"), 20, 3610},
		{config("graceful_shutdown = '1500ms'\n  [gateway]\n  drain = '20s'\n  shutdown_grace = '1m'"), 85, 12},
		{"{gateway: {terminationGracePeriodSeconds: 60}, workers: {terminationGracePeriodSeconds: 600}}", 60, 600},
	} {
		rendered, err := render(t, parseValues(t, given.values))
		if err != nil {
			t.Errorf("%s: %v", given.values, err)
			continue
		}
		found := grace(decodeAll(t, rendered))
		if found["everturn-gateway"] != given.gateway || found["everturn-worker"] != given.worker {
			t.Errorf("%s: %v instead of %d and %d", given.values, found, given.gateway, given.worker)
		}
	}
}

func TestTheNotesWarnOfWhatCosts(t *testing.T) {
	const cut = "the model of agent default may be silent for 60 s, and a worker that stops waits 20 s"
	for _, given := range []struct {
		values, expect string
		isThere        bool
	}{
		{"{}", "there is no Redis", true},
		{"redis: {existingSecret: everturn}", "there is no Redis", false},
		{"{}", "a model call", false},
		{config("graceful_shutdown = '20s'"), cut, true},
	} {
		rendered, err := render(t, parseValues(t, given.values))
		if err != nil {
			t.Errorf("%s: %v", given.values, err)
		} else if strings.Contains(rendered.notes, given.expect) != given.isThere {
			t.Errorf("%s: %q is there or not, in %s", given.values, given.expect, rendered.notes)
		}
	}
}

func TestHelmFindsNothingToSay(t *testing.T) {
	found := lint.AllWithKubeVersion("../chart", readValues(t, "values/minimal.yaml"), "agents", nil)
	for _, message := range found.Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// A pool may take back what `workers` says: nothing, zero and false count as well.
func TestAPoolOverridesWithNothing(t *testing.T) {
	rendered, err := render(t, parseValues(t, `
workers:
  replicas: 3
  priorityClassName: high
  extraEnv: [{name: SHARED, value: "1"}]
  pools:
    resting:
      replicas: 0
      priorityClassName: ""
      extraEnv: []
      podDisruptionBudget: {enabled: false}
    other: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, document := range rendered.documents {
		for _, part := range []string{"replicas: 0", "replicas: 3", "priorityClassName: high", "name: SHARED", "kind: PodDisruptionBudget"} {
			counts[part] += strings.Count(document.text, part)
		}
	}
	// The gateway has a budget, too.
	want := map[string]int{"replicas: 0": 1, "replicas: 3": 1, "priorityClassName: high": 1, "name: SHARED": 1, "kind: PodDisruptionBudget": 2}
	if !maps.Equal(counts, want) {
		t.Errorf("%v instead of %v", counts, want)
	}
}
