{{/*
The objects of the Temporal Worker Controller, of its version 1.7 and later: a WorkerDeployment instead of a Deployment. It
makes one Deployment for each version of the pod template, and adds TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,
TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID and the credentials to its pods.
*/}}
{{- define "everturn.workerDeployment" }}
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "everturn.labels" . | nindent 4 }}
spec:
  replicas: {{ .settings.replicas }}
  minReadySeconds: {{ .settings.minReadySeconds }}
  progressDeadlineSeconds: 900
  workerOptions:
    connectionRef:
      name: {{ include "everturn.fullname" .root }}-temporal
    temporalNamespace: {{ .root.Values.temporal.namespace | quote }}
  rollout:
    {{- toYaml .root.Values.workerController.rollout | nindent 4 }}
  sunset:
    {{- toYaml .root.Values.workerController.sunset | nindent 4 }}
  template:
    {{- .template | nindent 4 }}
---
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata:
  name: {{ include "everturn.fullname" .root }}-temporal
  labels:
    {{- include "everturn.labels" . | nindent 4 }}
spec:
  {{- with .root.Values.temporal }}
  hostPort: {{ .address | quote }}
  {{- with .tls.serverName }}
  tls:
    serverName: {{ . | quote }}
  {{- end }}
  {{- with .tls.clientSecret }}
  # The controller connects, too: where the server has an authority of its own, its certificate is in this Secret as ca.crt.
  mutualTLSSecretRef:
    name: {{ . }}
  {{- end }}
  {{- with .apiKey.existingSecret }}
  apiKeySecretRef:
    name: {{ . }}
    key: {{ $.root.Values.temporal.apiKey.key }}
  {{- end }}
  {{- end }}
{{- end }}
