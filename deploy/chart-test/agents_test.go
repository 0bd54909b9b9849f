package charttest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The objects of a chart by template, without the ConfigMap of the agents.
func withoutAgents(t *testing.T, values string) []string {
	t.Helper()
	rendered, err := render(t, parseValues(t, values))
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	var texts []string
	for _, document := range rendered.documents {
		if !strings.Contains(document.text, "name: everturn-agents\n  labels:") {
			texts = append(texts, document.text)
		}
	}
	return texts
}

func TestAChangedAgentRestartsNoPod(t *testing.T) {
	first := withoutAgents(t, "{}")
	for _, changed := range []string{
		"agents: {default.md: \"You answer fast.\"}",
		"agents: {more.toml: \"[agents.more]\\nprovider = 'openai'\\nmodel = 'm'\"}",
	} {
		if !slices.Equal(first, withoutAgents(t, changed)) {
			t.Errorf("%s: another object has changed than the ConfigMap of the agents", changed)
		}
	}
	if slices.Equal(first, withoutAgents(t, "config: \"[auth]\\nrequired = true\"")) {
		t.Error("a changed everturn.toml restarts no pod")
	}
}

func TestAnAgentMayBeInEitherPlace(t *testing.T) {
	const agent = "[auth]\\nrequired = true\\n[agents.default]\\nprovider = 'openai'\\nmodel = 'm'"
	for _, values := range []string{
		"{agents: null, config: \"" + agent + "\"}",
		"{agents: null, existingAgentsConfigMap: mine}",
	} {
		withoutAgents(t, values)
	}
}

// The kubelet never changes a file that is mounted by subPath, and a missing ConfigMap must not stop a pod.
func TestAgentsAreMountedAsAFolder(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		rendered, err := render(t, readValues(t, cases[name]...))
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range rendered.documents {
			if !strings.Contains(document.text, "containerPort: ") {
				continue
			}
			for _, expected := range []string{"mountPath: /etc/everturn/agents.d\n", "optional: true\n"} {
				if !strings.Contains(document.text, expected) {
					t.Errorf("%s: %s lacks %q", name, document.template, expected)
				}
			}
		}
	}
}
