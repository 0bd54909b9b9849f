{{/* What every pod has. Takes root. */}}
{{- define "everturn.podBasics" -}}
automountServiceAccountToken: false
# A Service named everturn would otherwise put EVERTURN_PORT and its like among the settings.
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{/*
The pod template of a role that runs until it is told to stop. Takes root, component, pool of a worker, settings (the
values of the gateway or of the pool), grace, env of the role (text), listens (its port) and controlled.
*/}}
{{- define "everturn.podTemplate" -}}
{{- $values := .root.Values -}}
metadata:
  # No version of the chart: a new chart alone must not restart pods.
  labels:
    {{- include "everturn.selector" . | nindent 4 }}
    # The Service for Prometheus selects by this: pods of Jobs have no health port.
    everturn/health: "true"
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: everturn
    {{- if not $values.existingConfigMap }}
    # A changed everturn.toml is rolled out like a new image.
    checksum/config: {{ $values.config | sha256sum }}
    {{- end }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "everturn.serviceAccountName" .root }}
  {{- include "everturn.podBasics" . | nindent 2 }}
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with .settings.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .settings.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .settings.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .settings.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "everturn.spread" . | nindent 2 }}
  {{- with .settings.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: everturn
      image: {{ include "everturn.image" (dict "root" .root "image" .settings.image) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - {{ .component }}
        {{- with .settings.args }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        - name: EVERTURN_CONFIG
          value: /etc/everturn/everturn.toml
        - name: EVERTURN_HEALTH_LISTEN
          value: 0.0.0.0:{{ $values.health.port }}
        {{- include "everturn.connectionEnv" . | nindent 8 }}
        {{- with include "everturn.tracesEnv" .root }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with get . "env" }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- range (concat $values.extraEnv .settings.extraEnv) }}
        - {{ toYaml . | nindent 10 | trim }}
        {{- end }}
      {{- with (concat $values.extraEnvFrom .settings.extraEnvFrom) }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        {{- with get . "listens" }}
        - name: http
          containerPort: {{ . }}
        {{- end }}
        - name: health
          containerPort: {{ $values.health.port }}
      {{- include "everturn.probes" .root | nindent 6 }}
      resources:
        {{- toYaml .settings.resources | nindent 8 }}
      securityContext:
        {{- toYaml $values.securityContext | nindent 8 }}
      volumeMounts:
        # One file, so that folders of skills can be mounted beside it.
        - name: config
          mountPath: /etc/everturn/everturn.toml
          subPath: everturn.toml
          readOnly: true
        # A whole folder: the kubelet never changes a file that is mounted by subPath.
        - name: agents
          mountPath: /etc/everturn/agents.d
          readOnly: true
        {{- include "everturn.connectionMounts" . | nindent 8 }}
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .settings.sidecars }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "everturn.configMapName" .root }}
    # Optional, so that the first agents restart no pod, either.
    - name: agents
      configMap:
        name: {{ include "everturn.agentsConfigMapName" .root }}
        optional: true
    {{- include "everturn.connectionVolumes" . | nindent 4 }}
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* Each constraint counts the pods of one version: otherwise the old pods of a rollout would decide where new ones go. */}}
{{- define "everturn.spread" -}}
{{- if .settings.topologySpreadConstraints -}}
topologySpreadConstraints:
  {{- range .settings.topologySpreadConstraints }}
  - {{ toYaml . | nindent 4 | trim }}
    {{- if not (hasKey . "labelSelector") }}
    labelSelector:
      matchLabels:
        {{- include "everturn.selector" $ | nindent 8 }}
    {{- end }}
    {{- if not (or (hasKey . "matchLabelKeys") (get $ "controlled")) }}
    matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/*
startupz: it has connected. readyz: it serves, or polls. livez: the watchdog of the process itself; no dependency's
failure restarts a process.
*/}}
{{- define "everturn.probes" -}}
startupProbe:
  httpGet:
    path: /startupz
    port: health
  {{- toYaml .Values.probes.startup | nindent 2 }}
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  {{- toYaml .Values.probes.readiness | nindent 2 }}
livenessProbe:
  httpGet:
    path: /livez
    port: health
  {{- toYaml .Values.probes.liveness | nindent 2 }}
{{- end -}}

{{/*
The pod of a command that ends by itself. Takes root, component, args, resources and serviceAccountName, and what
"everturn.connectionEnv" takes.
*/}}
{{- define "everturn.taskPod" -}}
{{- $values := .root.Values -}}
{{- /* A migration runs before the configuration is there. What removes files must know where they are. */ -}}
{{- $isConfigured := eq .component "retention" -}}
metadata:
  labels:
    {{- include "everturn.selector" . | nindent 4 }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: Never
  serviceAccountName: {{ .serviceAccountName }}
  {{- include "everturn.podBasics" . | nindent 2 }}
  containers:
    - name: everturn
      image: {{ include "everturn.image" (dict "root" .root) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        {{- toYaml .args | nindent 8 }}
      env:
        {{- include "everturn.connectionEnv" . | nindent 8 }}
        {{- if $isConfigured }}
        - name: EVERTURN_CONFIG
          value: /etc/everturn/everturn.toml
        {{- range $values.extraEnv }}
        - {{ toYaml . | nindent 10 | trim }}
        {{- end }}
      {{- with $values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
        {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      securityContext:
        {{- toYaml $values.securityContext | nindent 8 }}
      volumeMounts:
        {{- if $isConfigured }}
        - name: config
          mountPath: /etc/everturn/everturn.toml
          subPath: everturn.toml
          readOnly: true
        {{- end }}
        {{- include "everturn.connectionMounts" . | nindent 8 }}
  volumes:
    {{- if $isConfigured }}
    - name: config
      configMap:
        name: {{ include "everturn.configMapName" .root }}
    {{- end }}
    {{- include "everturn.connectionVolumes" . | nindent 4 }}
{{- end -}}
