package charttest

import (
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of KEDA, of the Gateway API and of the Temporal Worker Controller bring hundreds of modules. These have the fields that the chart
// may use, as they are documented, and nothing else, so that any other field is an error.

// KEDA 2.22: https://keda.sh/docs/2.22/reference/scaledobject-spec/
type scaledObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		PollingInterval int32 `json:"pollingInterval"`
		CooldownPeriod  int32 `json:"cooldownPeriod"`
		MinReplicaCount int32 `json:"minReplicaCount"`
		MaxReplicaCount int32 `json:"maxReplicaCount"`
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscaling.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []temporalTrigger `json:"triggers"`
	} `json:"spec"`
}

// https://keda.sh/docs/2.22/scalers/temporal/: all parameters are strings.
type temporalTrigger struct {
	Type     string `json:"type"`
	Metadata struct {
		Endpoint        string `json:"endpoint"`
		Namespace       string `json:"namespace"`
		TaskQueue       string `json:"taskQueue"`
		QueueTypes      string `json:"queueTypes"`
		TargetQueueSize string `json:"targetQueueSize"`
		TLSServerName   string `json:"tlsServerName"`
	} `json:"metadata"`
	AuthenticationRef struct {
		Name string `json:"name"`
	} `json:"authenticationRef"`
}

// https://gateway-api.sigs.k8s.io/reference/spec/#httproute
type httpRoute struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ParentRefs []struct {
			Name        string `json:"name"`
			Namespace   string `json:"namespace"`
			SectionName string `json:"sectionName"`
		} `json:"parentRefs"`
		Hostnames []string `json:"hostnames"`
		Rules     []struct {
			Matches []struct {
				Path struct {
					Type  string `json:"type"`
					Value string `json:"value"`
				} `json:"path"`
			} `json:"matches"`
			Timeouts struct {
				Request string `json:"request"`
			} `json:"timeouts"`
			BackendRefs []struct {
				Name string `json:"name"`
				Port int32  `json:"port"`
			} `json:"backendRefs"`
		} `json:"rules"`
	} `json:"spec"`
}

// https://keda.sh/docs/2.22/concepts/authentication/
type triggerAuthentication struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		SecretTargetRef []struct {
			Parameter string `json:"parameter"`
			Name      string `json:"name"`
			Key       string `json:"key"`
		} `json:"secretTargetRef"`
	} `json:"spec"`
}

// Temporal Worker Controller 1.8, api/v1alpha1 of https://github.com/temporalio/temporal-worker-controller
type workerDeployment struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Replicas                *int32               `json:"replicas"`
		MinReadySeconds         int32                `json:"minReadySeconds"`
		ProgressDeadlineSeconds *int32               `json:"progressDeadlineSeconds"`
		Template                core.PodTemplateSpec `json:"template"`
		WorkerOptions           struct {
			ConnectionRef     named  `json:"connectionRef"`
			TemporalNamespace string `json:"temporalNamespace"`
		} `json:"workerOptions"`
		Rollout struct {
			Strategy string `json:"strategy"`
			Steps    []struct {
				RampPercentage int           `json:"rampPercentage"`
				PauseDuration  meta.Duration `json:"pauseDuration"`
			} `json:"steps"`
		} `json:"rollout"`
		Sunset struct {
			ScaledownDelay *meta.Duration `json:"scaledownDelay"`
			DeleteDelay    *meta.Duration `json:"deleteDelay"`
		} `json:"sunset"`
	} `json:"spec"`
}

type named struct {
	Name string `json:"name"`
}

type connection struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		HostPort string `json:"hostPort"`
		TLS      *struct {
			ServerName string `json:"serverName"`
		} `json:"tls"`
		MutualTLSSecretRef *named                  `json:"mutualTLSSecretRef"`
		APIKeySecretRef    *core.SecretKeySelector `json:"apiKeySecretRef"`
	} `json:"spec"`
}
