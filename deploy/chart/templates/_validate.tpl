{{/* What the schema cannot say. Each message says what to do. */}}
{{- define "everturn.validate" -}}
{{- if not .Values.database.existingSecret -}}
{{- fail "database.existingSecret is missing: name a Secret with the URL of PostgreSQL under the key database.key" -}}
{{- end -}}
{{- if not .Values.temporal.address -}}
{{- fail "temporal.address is missing: host and port of Temporal's frontend" -}}
{{- end -}}
{{- if and .Values.temporal.apiKey.existingSecret .Values.temporal.tls.clientSecret -}}
{{- fail "temporal.apiKey.existingSecret and temporal.tls.clientSecret are both set: Temporal takes an API key or a client certificate" -}}
{{- end -}}
{{- with .Values.temporal -}}
{{- $hasTls := or .tls.enabled .tls.serverName .tls.clientSecret .tls.caSecret .apiKey.existingSecret -}}
{{- if not (or $hasTls (has "temporal" $.Values.allowPlaintext)) -}}
{{- fail "temporal.address would be reached without TLS, which no process of everturn does unless it is allowed; set temporal.tls.enabled (and temporal.tls.caSecret for an authority of your own), or allowPlaintext: [temporal] where nobody else is on the way" -}}
{{- end -}}
{{- end -}}
{{- $config := fromJson (include "everturn.config" .) -}}
{{- $auth := dig "auth" dict $config -}}
{{- if not (or .Values.existingConfigMap .Values.gateway.insecureNoAuth (get $auth "required")) -}}
{{- fail "config has no `required = true` under [auth], so no gateway would start; set it, or gateway.insecureNoAuth when a proxy asks who is calling" -}}
{{- end -}}
{{- range $way := list "ingress" "httpRoute" -}}
{{- if and (get $.Values.gateway $way).enabled (not $.Values.existingConfigMap) (not $.Values.gateway.insecureNoAuth) -}}
{{- if not (dig "gateway" "trusted_proxies" list $config) -}}
{{- fail (printf "gateway.%s.enabled, but config has no `trusted_proxies` under [gateway], so every client would have the address of the proxy, in limits on addresses and in the audit trail; set `trusted_proxies` to the network of the proxy's pods, like [\"10.0.0.0/8\"]" $way) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.gateway.httpRoute.enabled (not .Values.gateway.httpRoute.parentRefs) -}}
{{- fail "gateway.httpRoute.enabled, but gateway.httpRoute.parentRefs is empty; name the Gateway that the route belongs to, like [{name: public, namespace: gateways}]" -}}
{{- end -}}
{{- if and .Values.agents .Values.existingAgentsConfigMap -}}
{{- fail "agents and existingAgentsConfigMap are both set: pods mount one ConfigMap as agents.d; move the files of agents into your ConfigMap" -}}
{{- end -}}
{{- if not (or .Values.existingConfigMap .Values.existingAgentsConfigMap (fromJson (include "everturn.agents" .))) -}}
{{- fail "there is no agent, so no worker would start; write a file with a table like [agents.default] under `agents`, such as `agents: {default.toml: ...}`, or the table into `config`, or name a ConfigMap of yours in existingAgentsConfigMap" -}}
{{- end -}}
{{- $pools := fromJson (include "everturn.pools" .) -}}
{{- if .Values.existingConfigMap -}}
{{- $why := "must be set with existingConfigMap, because the chart cannot read from it how long a pod takes to stop" -}}
{{- if kindIs "invalid" .Values.gateway.terminationGracePeriodSeconds -}}
{{- fail (printf "gateway.terminationGracePeriodSeconds %s" $why) -}}
{{- end -}}
{{- range $name, $pool := $pools -}}
{{- if kindIs "invalid" $pool.terminationGracePeriodSeconds -}}
{{- fail (printf "workers.terminationGracePeriodSeconds %s" $why) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not .Values.traces.endpoint -}}
{{- if or .Values.traces.content .Values.traces.headersSecret.name (not (kindIs "invalid" .Values.traces.sampleRatio)) -}}
{{- fail "traces.endpoint is missing: without it there are no traces, whatever else stands under traces" -}}
{{- end -}}
{{- end -}}
{{- include "everturn.validateKinds" (dict "root" . "pools" $pools) -}}
{{- range $name, $pool := $pools -}}
{{- if and $pool.autoscaling.enabled $pool.keda.enabled -}}
{{- fail (printf "workers: pool %s has autoscaling and keda; both would set its replicas" $name) -}}
{{- end -}}
{{- if and $.Values.workerController.enabled (or $pool.autoscaling.enabled $pool.keda.enabled) -}}
{{- fail "workerController makes one Deployment for each version, which autoscaling and keda of this chart do not know; scale them with a WorkerResourceTemplate" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.workerController.enabled (gt (len $pools) 1) -}}
{{- fail "workerController takes one pool: each pool would be a Worker Deployment of its own, and two of them cannot share a task queue" -}}
{{- end -}}
{{- end -}}

{{/* A turn that a worker of workflows begins has its calls on queues that only workers of models and of tools poll. */}}
{{- define "everturn.validateKinds" -}}
{{- $kinds := list -}}
{{- range $name, $pool := .pools -}}
{{- with $pool.only -}}
{{- $kinds = append $kinds . -}}
{{- end -}}
{{- end -}}
{{- if $kinds -}}
{{- if .root.Values.workerController.enabled -}}
{{- fail "workerController takes one pool, and so that pool has to do all kinds of work: take `only` away" -}}
{{- end -}}
{{- range list "workflows" "models" "tools" -}}
{{- if not (has . $kinds) -}}
{{- fail (printf "workers.pools: no pool does the %s: turns would wait for ever; where one pool has `only`, there must be one with `only: %s`" . .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
