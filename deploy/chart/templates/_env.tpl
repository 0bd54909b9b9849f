{{/*
Where database, Redis and Temporal are: for every container. Takes root, controlled, and database: the Secret of the URL where
it is another one than that of all.
*/}}
{{- define "everturn.connectionEnv" -}}
{{- $database := default .root.Values.database (get . "database") -}}
- name: EVERTURN_DATABASE
  valueFrom:
    secretKeyRef:
      name: {{ $database.existingSecret }}
      key: {{ $database.key }}
{{- with .root.Values.redis.existingSecret }}
- name: EVERTURN_REDIS
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.root.Values.redis.key }}
{{- end }}
{{- with .root.Values.allowPlaintext }}
- name: EVERTURN_ALLOW_PLAINTEXT
  value: {{ join "," . | quote }}
{{- end }}
- name: EVERTURN_TASK_QUEUE
  value: {{ .root.Values.taskQueue | quote }}
- name: EVERTURN_LOG_FORMAT
  value: {{ .root.Values.log.format }}
{{- with .root.Values.log.filter }}
- name: EVERTURN_LOG
  value: {{ . | quote }}
{{- end }}
{{- include "everturn.temporalEnv" . }}
{{- end -}}

{{/* The worker controller adds address, namespace, key and client certificate to a worker's pod by itself (controlled). */}}
{{- define "everturn.temporalEnv" -}}
{{- $temporal := .root.Values.temporal -}}
{{- $tls := $temporal.tls -}}
{{- if not (get . "controlled") }}
- name: TEMPORAL_ADDRESS
  value: {{ $temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ $temporal.namespace | quote }}
{{- with $temporal.apiKey.existingSecret }}
- name: TEMPORAL_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $temporal.apiKey.key }}
{{- end }}
{{- if $tls.clientSecret }}
- name: TEMPORAL_TLS_CLIENT_CERT_PATH
  value: /etc/everturn/temporal-client/tls.crt
- name: TEMPORAL_TLS_CLIENT_KEY_PATH
  value: /etc/everturn/temporal-client/tls.key
{{- end }}
{{- with $tls.serverName }}
- name: TEMPORAL_TLS_SERVER_NAME
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- if $tls.enabled }}
- name: TEMPORAL_TLS
  value: "true"
{{- end }}
{{- if $tls.caSecret }}
- name: TEMPORAL_TLS_SERVER_CA_CERT_PATH
  value: /etc/everturn/temporal-ca/ca.crt
{{- end }}
{{- end -}}

{{/* Where traces go, and what they have; nothing without an endpoint. For gateways and workers. */}}
{{- define "everturn.tracesEnv" -}}
{{- with .Values.traces -}}
{{- if .endpoint -}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
{{- with .headersSecret }}
{{- if .name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}
{{- if .content }}
- name: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
  value: "true"
{{- end }}
{{- if not (kindIs "invalid" .sampleRatio) }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .sampleRatio | quote }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Certificates of the connections, and the one place to write to. Takes root, and controlled. */}}
{{- define "everturn.connectionVolumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .root.Values.tmpSizeLimit }}
{{- with .root.Values.database.caSecret }}
- name: database-ca
  secret:
    secretName: {{ . }}
{{- end }}
{{- with .root.Values.redis.caSecret }}
- name: redis-ca
  secret:
    secretName: {{ . }}
{{- end }}
{{- with .root.Values.temporal.tls.caSecret }}
- name: temporal-ca
  secret:
    secretName: {{ . }}
{{- end }}
{{- if not (get . "controlled") }}
{{- with .root.Values.temporal.tls.clientSecret }}
- name: temporal-client
  secret:
    secretName: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "everturn.connectionMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .root.Values.database.caSecret }}
- name: database-ca
  mountPath: /etc/everturn/database
  readOnly: true
{{- end }}
{{- if .root.Values.redis.caSecret }}
- name: redis-ca
  mountPath: /etc/everturn/redis
  readOnly: true
{{- end }}
{{- if .root.Values.temporal.tls.caSecret }}
- name: temporal-ca
  mountPath: /etc/everturn/temporal-ca
  readOnly: true
{{- end }}
{{- if and .root.Values.temporal.tls.clientSecret (not (get . "controlled")) }}
- name: temporal-client
  mountPath: /etc/everturn/temporal-client
  readOnly: true
{{- end }}
{{- end -}}
