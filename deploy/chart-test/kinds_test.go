package charttest

import (
	"maps"
	"strings"
	"testing"
)

// Each pool does what `only` says, and is scaled by the queue that its workers poll then.
func TestAPoolPollsAndIsScaledByItsKindOfWork(t *testing.T) {
	rendered, err := render(t, parseValues(t, `
taskQueue: agents
workers:
  only: models
  keda: {enabled: true, queueTypes: workflow}
  pools:
    turns: {only: workflows}
    more-turns: {only: workflows, keda: {queueTypes: "workflow,activity"}}
    models: {}
    tools: {only: tools}
    all: {only: ""}
    resting: {only: tools, replicas: 0, keda: {enabled: false}}
`))
	if err != nil {
		t.Fatal(err)
	}
	objects := decodeAll(t, rendered)
	does, scaledBy := map[string]string{}, map[string]string{}
	for _, load := range workloads(objects) {
		if pool, is := strings.CutPrefix(load.name, "everturn-worker-"); is {
			does[pool] = environment(load.pod, "EVERTURN_WORKER_ONLY")
		}
	}
	for _, object := range objects {
		if object, is := object.(*scaledObject); is {
			queue := object.Spec.Triggers[0].Metadata
			scaledBy[strings.TrimPrefix(object.Name, "everturn-worker-")] = queue.TaskQueue + " " + queue.QueueTypes
		}
	}
	wantDoes := map[string]string{
		"turns": "workflows", "more-turns": "workflows", "models": "models", "tools": "tools", "all": "", "resting": "tools",
	}
	if !maps.Equal(does, wantDoes) {
		t.Errorf("pools do %v instead of %v", does, wantDoes)
	}
	wantScaledBy := map[string]string{
		"turns":      "agents workflow",
		"more-turns": "agents workflow,activity",
		"models":     "agents-models activity",
		"tools":      "agents-tools activity",
		"all":        "agents workflow",
	}
	if !maps.Equal(scaledBy, wantScaledBy) {
		t.Errorf("pools are scaled by %v instead of %v", scaledBy, wantScaledBy)
	}
}
