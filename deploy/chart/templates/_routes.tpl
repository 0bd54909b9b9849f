{{/*
The annotations of the ingress controller. The largest body is a file, or a message: [blobs] file_bytes and [limits]
body_bytes of everturn.toml, and 1 MiB for the rest of the request.
*/}}
{{- define "everturn.proxyAnnotations" -}}
{{- $controller := .Values.gateway.ingress.controller -}}
{{- if eq $controller "nginx" -}}
{{- $config := fromJson (include "everturn.config" .) -}}
{{- $file := dig "blobs" "file_bytes" 10485760 $config | int64 -}}
{{- $body := dig "limits" "body_bytes" 0 $config | int64 -}}
nginx.ingress.kubernetes.io/proxy-buffering: "off"
nginx.ingress.kubernetes.io/proxy-read-timeout: "3600"
nginx.ingress.kubernetes.io/proxy-body-size: {{ printf "%dm" (add (div (add (max $file $body) 1048575) 1048576) 1) }}
{{- else if eq $controller "alb" -}}
alb.ingress.kubernetes.io/healthcheck-path: /readyz
alb.ingress.kubernetes.io/load-balancer-attributes: idle_timeout.timeout_seconds=120
{{- end -}}
{{- end -}}
