{{/* The groups of the PrometheusRule, with what the values decide put in. Their own templates are not rendered. */}}
{{- define "everturn.rules" -}}
{{- $gateway := dig "gateway" dict (fromJson (include "everturn.config" .)) -}}
{{- $streams := get $gateway "max_streams" | default 10000 | int -}}
{{- .Files.Get "files/rules.yaml"
    | replace "runbook_url: docs/" (printf "runbook_url: %sdocs/" .Values.prometheusRule.runbookBase)
    | replace "0.8 * 10000" (printf "0.8 * %d" $streams) -}}
{{- end -}}
