package charttest

import (
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A workload is an object that makes pods.
type workload struct {
	name     string
	selector *meta.LabelSelector
	pod      core.PodTemplateSpec
	// Whether it runs until it is told to stop.
	serves bool
}

func workloads(objects []any) []workload {
	var found []workload
	for _, object := range objects {
		switch object := object.(type) {
		case *apps.Deployment:
			found = append(found, workload{object.Name, object.Spec.Selector, object.Spec.Template, true})
		case *workerDeployment:
			// The controller makes the selector.
			found = append(found, workload{object.Name, nil, object.Spec.Template, true})
		case *batch.Job:
			found = append(found, workload{object.Name, nil, object.Spec.Template, false})
		case *core.Pod:
			found = append(found, workload{object.Name, nil, core.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}, false})
		case *batch.CronJob:
			found = append(found, workload{object.Name, nil, object.Spec.JobTemplate.Spec.Template, false})
		}
	}
	return found
}

// grace is the time in seconds that the pods of a role have to stop, by the name of the workload.
func grace(objects []any) map[string]int64 {
	found := map[string]int64{}
	for _, workload := range workloads(objects) {
		if seconds := workload.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
			found[workload.name] = *seconds
		}
	}
	return found
}

// environment is the value of a variable of a pod's container, and nothing when it is not set.
func environment(pod core.PodTemplateSpec, name string) string {
	for _, found := range pod.Spec.Containers[0].Env {
		if found.Name == name {
			return found.Value
		}
	}
	return ""
}

// secretOf is the Secret and the key that a variable of a pod's container comes from, and nothing when it comes from none.
func secretOf(pod core.PodTemplateSpec, name string) string {
	for _, found := range pod.Spec.Containers[0].Env {
		if found.Name == name && found.ValueFrom != nil && found.ValueFrom.SecretKeyRef != nil {
			return found.ValueFrom.SecretKeyRef.Name + "/" + found.ValueFrom.SecretKeyRef.Key
		}
	}
	return ""
}
