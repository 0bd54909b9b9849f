{{/*
How long a pod may take to stop. The kubelet kills what is left then, and a killed worker's calls begin again. So the time
is computed from everturn.toml, and a smaller one is refused.
*/}}

{{/* everturn.toml as JSON; nothing when it is in a ConfigMap that the chart cannot read. */}}
{{- define "everturn.config" -}}
{{- if .Values.existingConfigMap -}}
{}
{{- else -}}
{{- $config := fromToml .Values.config -}}
{{- with get $config "Error" -}}
{{- fail (printf "config is not a valid everturn.toml: %s" .) -}}
{{- end -}}
{{- toJson $config -}}
{{- end -}}
{{- end -}}

{{/* The seconds of a duration like "500ms", "1m 30s" or "1h", rounded up. */}}
{{- define "everturn.seconds" -}}
{{- $factors := dict "ms" 1 "millis" 1 "s" 1000 "sec" 1000 "secs" 1000 "second" 1000 "seconds" 1000 -}}
{{- $factors = merge $factors (dict "m" 60000 "min" 60000 "mins" 60000 "minute" 60000 "minutes" 60000) -}}
{{- $factors = merge $factors (dict "h" 3600000 "hr" 3600000 "hour" 3600000 "hours" 3600000) -}}
{{- $text := toString . -}}
{{- $parts := regexFindAll "[0-9]+ *[a-z]+" $text -1 -}}
{{- $rest := regexReplaceAll "[0-9]+ *[a-z]+| " $text "" -}}
{{- $ms := 0 -}}
{{- range $parts -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- if not (hasKey $factors $unit) -}}
{{- $rest = $unit -}}
{{- else -}}
{{- $ms = add $ms (mul (regexFind "[0-9]+" . | int64) (get $factors $unit)) -}}
{{- end -}}
{{- end -}}
{{- if or $rest (not $parts) -}}
{{- fail (printf "config: the duration %q is not understood; write it like 500ms, 20s, 5m or 1h" $text) -}}
{{- end -}}
{{- div (add $ms 999) 1000 -}}
{{- end -}}

{{/* What is set, or what is needed. Takes set, needed, key, and why. */}}
{{- define "everturn.grace" -}}
{{- if kindIs "invalid" .set -}}
{{- .needed -}}
{{- else if lt (int .set) (int .needed) -}}
{{- fail (printf "%s is %d, and must be at least %d: %s" .key (int .set) (int .needed) .why) -}}
{{- else -}}
{{- int .set -}}
{{- end -}}
{{- end -}}

{{/* drain, then shutdown_grace, then 5 s to write the last log entries and close connections. */}}
{{- define "everturn.gatewayGrace" -}}
{{- $gateway := dig "gateway" dict (fromJson (include "everturn.config" .)) -}}
{{- $drain := include "everturn.seconds" (default "5s" (get $gateway "drain")) | int -}}
{{- $shutdown := include "everturn.seconds" (default "10s" (get $gateway "shutdown_grace")) | int -}}
{{- include "everturn.grace" (dict
    "set" .Values.gateway.terminationGracePeriodSeconds
    "needed" (add $drain $shutdown 5)
    "key" "gateway.terminationGracePeriodSeconds"
    "why" "a gateway takes drain, shutdown_grace ([gateway] of config) and 5 s to stop") -}}
{{- end -}}

{{/* graceful_shutdown, then 10 s to report what was stopped and to give the lease back. Takes root and the set seconds. */}}
{{- define "everturn.workerGrace" -}}
{{- $worker := dig "worker" dict (fromJson (include "everturn.config" .root)) -}}
{{- $graceful := include "everturn.seconds" (default "20s" (get $worker "graceful_shutdown")) | int -}}
{{- include "everturn.grace" (dict
    "set" .set
    "needed" (add $graceful 10)
    "key" "workers.terminationGracePeriodSeconds"
    "why" "a worker takes graceful_shutdown ([worker] of config) and 10 s to stop") -}}
{{- end -}}
