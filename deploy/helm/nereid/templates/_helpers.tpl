{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "nereid.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* Short enough for the suffixes of other objects, and a name for a Service, which has no dots and begins with a letter;
a release may be called a.b or 123. Templates quote all names: YAML takes 123 for a number and yes for a boolean. */}}
{{- define "nereid.fullname" -}}
{{- $release := .Release.Name | replace "." "-" }}
{{- $full := printf "%s-%s" $release (include "nereid.name" .) }}
{{- if .Values.fullnameOverride }}
{{- $full = .Values.fullnameOverride }}
{{- else if contains (include "nereid.name" .) $release }}
{{- $full = $release }}
{{- end }}
{{- if regexMatch "^[0-9]" $full }}
{{- $full = printf "%s-%s" .Chart.Name $release }}
{{- end }}
{{- $full | trunc 52 | trimAll "-" }}
{{- end }}

{{- define "nereid.selector" -}}
app.kubernetes.io/name: {{ include "nereid.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "nereid.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
{{- end }}

{{- define "nereid.labels" -}}
{{ include "nereid.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ include "nereid.chart" . | quote }}
{{- end }}

{{- define "nereid.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "nereid.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "nereid.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{- define "nereid.hasModelVolume" -}}
{{- if or .Values.models.persistentVolumeClaim .Values.models.configMap.name }}yes{{ end }}
{{- end }}

{{- define "nereid.hasObjectStore" -}}
{{- range .Values.models.repositories }}{{ if regexMatch "^(s3|gs|as|azure)://" . }}yes{{ end }}{{ end }}
{{- end }}

{{- /* Whether pods serve HTTP. The flag is in nobody's values but among extraArgs. */}}
{{- define "nereid.hasHttp" -}}
{{- $has := "yes" }}
{{- range .Values.extraArgs }}{{ if regexMatch "^--allow-http=(?i:false|off|0)$" . }}{{ $has = "" }}{{ end }}{{ end }}
{{- $has }}
{{- end }}

{{- define "nereid.hasAdmin" -}}
{{- if or .Values.admin.enabled .Values.apiKeys.existingSecret }}yes{{ end }}
{{- end }}

{{- define "nereid.cacheClaim" -}}
{{- default (printf "%s-cache" (include "nereid.fullname" .)) .Values.cache.existingClaim }}
{{- end }}

{{- define "nereid.isScaled" -}}
{{- if or .Values.autoscaling.enabled .Values.keda.enabled }}yes{{ end }}
{{- end }}

{{- /* What the schema cannot say. */}}
{{- define "nereid.check" -}}
{{- if and .Values.autoscaling.enabled .Values.keda.enabled }}
{{- fail "autoscaling.enabled and keda.enabled are both true: two would scale the same pods; choose one" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (not .Values.autoscaling.targetCPU) (not .Values.autoscaling.targetPendingRequests) }}
{{- fail "autoscaling.enabled is true and there is nothing to scale by: set autoscaling.targetCPU or autoscaling.targetPendingRequests" }}
{{- end }}
{{- range $name := list "autoscaling" "keda" }}
{{- $scaling := index $.Values $name }}
{{- if gt (int $scaling.minReplicas) (int $scaling.maxReplicas) }}
{{- fail (printf "%s.minReplicas is %v, which is more than %s.maxReplicas, %v" $name $scaling.minReplicas $name $scaling.maxReplicas) }}
{{- end }}
{{- end }}
{{- if and .Values.keda.enabled (eq (int .Values.keda.minReplicas) 0) (not .Values.keda.query) }}
{{- fail "keda.minReplicas is 0 and keda.query is empty: without a pod there are no metrics of pods, so that none would ever be started again; set keda.query to one that something else answers, such as what stands in front" }}
{{- end }}
{{- if and .Values.models.folder (not .Values.models.persistentVolumeClaim) }}
{{- fail "models.folder is set and models.persistentVolumeClaim is not, of which it is a folder" }}
{{- end }}
{{- if and .Values.models.persistentVolumeClaim .Values.models.configMap.name }}
{{- fail "models.persistentVolumeClaim and models.configMap.name are both set, and both would be /models: choose one, or mount one by extraVolumes" }}
{{- end }}
{{- if and .Values.models.configMap.name (not .Values.models.configMap.items) }}
{{- fail "models.configMap.items is empty: a key cannot have slashes, so that it does not say which file of which model it is, such as {key: digits.onnx, path: digits/1/model.onnx}" }}
{{- end }}
{{- $mode := .Values.models.controlMode }}
{{- if and .Values.models.loadModels (not (has $mode (list "explicit" "ondemand"))) }}
{{- fail (printf "models.loadModels needs models.controlMode explicit or ondemand, and it is %s" $mode) }}
{{- end }}
{{- if and (has "*" .Values.models.loadModels) (eq $mode "ondemand") }}
{{- fail "models.loadModels has *, and models.controlMode is ondemand: models are loaded when requests need them; leave * out" }}
{{- end }}
{{- range $name := list "memoryBudget" "gpuMemoryBudget" "idleSeconds" "pinModels" }}
{{- if and (index $.Values.models.onDemand $name) (ne $mode "ondemand") }}
{{- fail (printf "models.onDemand.%s needs models.controlMode ondemand, and it is %s" $name $mode) }}
{{- end }}
{{- end }}
{{- if and .Values.probes.grpc .Values.tls.existingSecret }}
{{- fail "probes.grpc is true and tls.existingSecret is set: Kubernetes asks over gRPC without TLS only; leave probes.grpc false" }}
{{- end }}
{{- if and .Values.probes.grpc (not (include "nereid.hasAdmin" .)) }}
{{- fail "probes.grpc is true and admin.enabled is false: gRPC says whether a server is ready, and only the admin listener, whether it is live; set admin.enabled" }}
{{- end }}
{{- if and (not .Values.probes.grpc) (not (include "nereid.hasHttp" .)) }}
{{- fail "extraArgs has --allow-http=false and probes.grpc is false: probes would ask a port that is not there; set probes.grpc" }}
{{- end }}
{{- $metrics := .Values.metrics }}
{{- if and (not $metrics.enabled) (or $metrics.serviceMonitor.enabled $metrics.prometheusRule.enabled .Values.keda.enabled) }}
{{- fail "metrics.enabled is false, and metrics.serviceMonitor, metrics.prometheusRule or keda need metrics" }}
{{- end }}
{{- end }}

{{- /* The bytes of a size such as 12Gi; 0 for an empty text. */ -}}
{{- define "nereid.bytes" -}}
{{- $factor := 1 }}
{{- if hasSuffix "Ki" . }}{{ $factor = 1024 }}{{ else if hasSuffix "Mi" . }}{{ $factor = 1048576 }}{{ else if hasSuffix "Gi" . }}{{ $factor = 1073741824 }}{{ end }}
{{- mul (regexFind "^[0-9]*" . | int64) $factor }}
{{- end }}

{{- define "nereid.args" -}}
{{- $v := .Values }}
{{- if $v.models.persistentVolumeClaim }}
- --model-repository=/models
{{- else if $v.models.configMap.name }}
- --model-repository=/models/repository
{{- else if not $v.models.repositories }}
- --model-repository=/opt/nereid/share/nereid/models
{{- end }}
{{- range $v.models.repositories }}
- {{ printf "--model-repository=%s" . | quote }}
{{- end }}
- --model-control-mode={{ $v.models.controlMode }}
{{- if has $v.models.controlMode (list "poll" "ondemand") }}
- --repository-poll-secs={{ int $v.models.pollSeconds }}
{{- end }}
{{- if eq $v.models.controlMode "ondemand" }}
{{- $demand := $v.models.onDemand }}
- --model-memory-budget={{ include "nereid.bytes" $demand.memoryBudget }}
- --model-gpu-memory-budget={{ include "nereid.bytes" $demand.gpuMemoryBudget }}
- --load-wait-secs={{ int $demand.loadWaitSeconds }}
- --model-min-stay-secs={{ int $demand.minStaySeconds }}
- --model-idle-secs={{ int $demand.idleSeconds }}
{{- range $demand.pinModels }}
- {{ printf "--pin-model=%s" . | quote }}
{{- end }}
{{- end }}
{{- range $v.models.loadModels }}
- {{ printf "--load-model=%s" . | quote }}
{{- end }}
- --strict-readiness={{ $v.models.strictReadiness }}
- --exit-on-error={{ $v.models.exitOnError }}
- --http-port={{ int $v.ports.http }}
- --grpc-port={{ int $v.ports.grpc }}
{{- if $v.metrics.enabled }}
- --metrics-port={{ int $v.ports.metrics }}
- --metrics-config=nereid_histograms={{ $v.metrics.histograms }}
{{- else }}
- --allow-metrics=false
{{- end }}
- --drain-secs={{ int $v.shutdown.drainSeconds }}
- --exit-timeout-secs={{ int $v.shutdown.exitTimeoutSeconds }}
- --log-format={{ $v.log.format }}
- --log-verbose={{ int $v.log.verbose }}
{{- if include "nereid.hasAdmin" . }}
- --admin-address=127.0.0.1
- --admin-port={{ int $v.admin.port }}
{{- end }}
{{- if $v.apiKeys.existingSecret }}
- {{ printf "--api-keys=/etc/nereid/access/%s" $v.apiKeys.key | quote }}
{{- end }}
{{- if $v.tls.existingSecret }}
{{- range list "http" "grpc" }}
- --{{ . }}-use-ssl=true
- --{{ . }}-server-cert=/etc/nereid/tls/tls.crt
- --{{ . }}-server-key=/etc/nereid/tls/tls.key
{{- end }}
{{- end }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{- define "nereid.env" -}}
{{- if include "nereid.hasObjectStore" . }}
{{- range list "TRITON_AWS_MOUNT_DIRECTORY" "TRITON_GCS_MOUNT_DIRECTORY" "TRITON_AZURE_MOUNT_DIRECTORY" }}
- {name: {{ . }}, value: /var/cache/nereid}
{{- end }}
{{- end }}
{{- if .Values.credentials.fileSecret }}
- name: TRITON_CLOUD_CREDENTIAL_PATH
  value: {{ printf "/etc/nereid/credentials/%s" .Values.credentials.fileKey | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "nereid.envFrom" -}}
{{- with .Values.credentials.environmentSecret }}
- secretRef: {name: {{ . | quote }}}
{{- end }}
{{- with .Values.extraEnvFrom }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "nereid.resources" -}}
{{- $resources := deepCopy .Values.resources }}
{{- if gt (int .Values.gpu.count) 0 }}
{{- $gpu := dict "limits" (dict .Values.gpu.resource (int .Values.gpu.count)) }}
{{- $resources = mergeOverwrite $resources $gpu }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{- /* A probe's question: of (dict "root" . "asks" "live"), or "ready". */}}
{{- define "nereid.probe" -}}
{{- $v := .root.Values }}
{{- if not $v.probes.grpc -}}
httpGet:
  path: /v2/health/{{ .asks }}
  port: http
  {{- if $v.tls.existingSecret }}
  scheme: HTTPS
  {{- end }}
{{- else if eq .asks "ready" -}}
grpc: {port: {{ int $v.ports.grpc }}}
{{- else -}}
# gRPC's health service knows one answer: whether the server is ready. By that, a pod that loads models for long, or drains,
# would be started again. Whether it is live, the admin listener says, which is reached from inside the pod alone.
exec:
  command: [nereid, health, --live, "--url=http://127.0.0.1:{{ int $v.admin.port }}", "--timeout={{ int $v.probes.timeoutSeconds }}s"]
{{- end }}
{{- end }}
