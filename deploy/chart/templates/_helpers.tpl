{{- define "everturn.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters, so that names made from it fit into the 63 of a label. */}}
{{- define "everturn.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "everturn.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "everturn.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "everturn.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* What a Deployment selects its pods by. It can never change. Takes root, component, and pool of a worker. */}}
{{- define "everturn.selector" -}}
app.kubernetes.io/name: {{ include "everturn.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with get . "pool" }}
everturn/pool: {{ . }}
{{- end }}
{{- end -}}

{{/* The labels of every object. Takes what "everturn.selector" takes. */}}
{{- define "everturn.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "everturn.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{/* Takes root, and the image that overrides parts of the chart's. */}}
{{- define "everturn.image" -}}
{{- $image := mergeOverwrite (deepCopy .root.Values.image) (deepCopy (default dict (get . "image"))) -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{/* The pools of workers with all their settings, as JSON: what a pool names overrides what `workers` says. */}}
{{- define "everturn.pools" -}}
{{- $shared := omit .Values.workers "pools" -}}
{{- $pools := dict -}}
{{- range $name, $own := default (dict "default" dict) .Values.workers.pools -}}
{{- $_ := set $pools $name (mergeOverwrite (deepCopy $shared) (deepCopy (default dict $own))) -}}
{{- end -}}
{{- toJson $pools -}}
{{- end -}}

{{/* The name of a pool's Deployment. The one of a release without pools has no name of its own. Takes root and pool. */}}
{{- define "everturn.workerName" -}}
{{- $base := printf "%s-worker" (include "everturn.fullname" .root) -}}
{{- if .root.Values.workers.pools -}}{{ $base }}-{{ .pool }}{{- else -}}{{ $base }}{{- end -}}
{{- end -}}

{{- define "everturn.configMapName" -}}
{{- default (printf "%s-config" (include "everturn.fullname" .)) .Values.existingConfigMap -}}
{{- end -}}

{{- define "everturn.agentsConfigMapName" -}}
{{- default (printf "%s-agents" (include "everturn.fullname" .)) .Values.existingAgentsConfigMap -}}
{{- end -}}

{{/* The agents that the chart can read, by name, as JSON: those of `config` and of `agents`. */}}
{{- define "everturn.agents" -}}
{{- $agents := default dict (get (fromJson (include "everturn.config" .)) "agents") -}}
{{- range $name, $text := .Values.agents -}}
{{- if hasSuffix ".toml" $name -}}
{{- $file := fromToml $text -}}
{{- with get $file "Error" -}}
{{- fail (printf "agents: %s is not valid TOML: %s" $name .) -}}
{{- end -}}
{{- $agents = merge $agents (default dict (get $file "agents")) -}}
{{- end -}}
{{- end -}}
{{- toJson $agents -}}
{{- end -}}
