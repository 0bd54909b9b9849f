{{/* The groups of the PrometheusRule, with what the values decide put in. Their own templates are not rendered. */}}
{{- define "everturn.rules" -}}
{{- $gateway := dig "gateway" dict (fromJson (include "everturn.config" .)) -}}
{{- $streams := get $gateway "max_streams" | default 10000 | int -}}
{{- .Files.Get "files/rules.yaml"
    | replace "runbook_url: docs/" (printf "runbook_url: %sdocs/" .Values.prometheusRule.runbookBase)
    | replace "0.8 * 10000" (printf "0.8 * %d" $streams)
    | replace "[1h])) > 50)" (printf "[1h])) > %v)" .Values.prometheusRule.usdPerHour)
    | replace "> 4 * 3600)" (printf "> %v * 3600)" .Values.prometheusRule.approvalHours) -}}
{{- end -}}
