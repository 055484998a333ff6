{{/* The release is the site's home here: names begin with it. */}}
{{- define "cloudshare.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "cloudshare.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cloudshare.labels" -}}
{{ include "cloudshare.selector" . }}
app.kubernetes.io/component: broker
cloudshare.io/site: {{ .Values.site }}
{{- end }}

{{- define "cloudshare.account" -}}
{{ .Values.serviceAccount.name | default (ternary (include "cloudshare.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "cloudshare.tasks" -}}
{{ .Values.kube.namespace | default .Release.Namespace }}
{{- end }}

{{- define "cloudshare.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "cloudshare.peers" -}}
{{ include "cloudshare.name" . }}-peers
{{- end }}

{{/* What the schema cannot say, in one line each. */}}
{{- define "cloudshare.check" -}}
{{- if not .Values.insecure }}
{{- fail "insecure is false, and the API is plain HTTP, which anybody between can read: say insecure: true, in a cluster whose network you trust" }}
{{- end }}
{{- $invited := .Values.federation.invitation.secret }}
{{- if and .Values.federation.bootstrap $invited }}
{{- fail "federation.bootstrap and federation.invitation: a site either founds a federation or joins one" }}
{{- end }}
{{- if and .Release.IsInstall (not .Values.federation.bootstrap) (not $invited) }}
{{- fail (printf "federation: say bootstrap: true to found one, or invitation: {secret: NAME} to join one; a member makes it: cloudshare invite %s" .Values.site) }}
{{- end }}
{{- if and (not .Values.kube.enabled) (not .Values.config.commands) }}
{{- fail "kube.enabled is false and config.commands is not true: nothing could run" }}
{{- end }}
{{- if and .Values.external.enabled (not .Values.network.advertise) }}
{{- fail "external.enabled without network.advertise: other brokers must be told the name or address of that Service" }}
{{- end }}
{{- if and .Values.kube.createNamespace (or (not .Values.kube.namespace) (eq .Values.kube.namespace .Release.Namespace)) }}
{{- fail "kube.createNamespace: name one in kube.namespace that is not the broker's own" }}
{{- end }}
{{- end }}
