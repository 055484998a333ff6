package tes

import "encoding/json"

// tesTask is a task in the words of TES 1.1. What the server sets is left out of what is kept.
type tesTask struct {
	ID           string            `json:"id,omitempty"`
	State        string            `json:"state,omitempty"`
	Name         string            `json:"name,omitempty"`
	Description  string            `json:"description,omitempty"`
	Inputs       []tesInput        `json:"inputs,omitempty"`
	Outputs      []tesOutput       `json:"outputs,omitempty"`
	Resources    *tesResources     `json:"resources,omitempty"`
	Executors    []tesExecutor     `json:"executors,omitempty"`
	Volumes      []string          `json:"volumes,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Logs         []tesTaskLog      `json:"logs,omitempty"`
	CreationTime string            `json:"creation_time,omitempty"`
}

// tesInput is a file or a directory that a task finds.
type tesInput struct {
	Name        string  `json:"name,omitempty"`
	Description string  `json:"description,omitempty"`
	URL         string  `json:"url,omitempty"`
	Path        string  `json:"path"`
	Type        string  `json:"type,omitempty"`
	Content     *string `json:"content,omitempty"`
	Streamable  bool    `json:"streamable,omitempty"`
}

// tesOutput is what a task leaves, and where it goes.
type tesOutput struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url"`
	Path        string `json:"path"`
	PathPrefix  string `json:"path_prefix,omitempty"`
	Type        string `json:"type,omitempty"`
}

// tesResources are what a task needs.
type tesResources struct {
	CPUCores                *int64            `json:"cpu_cores,omitempty"`
	Preemptible             bool              `json:"preemptible,omitempty"`
	RAM                     *float64          `json:"ram_gb,omitempty"`
	Disk                    *float64          `json:"disk_gb,omitempty"`
	Zones                   []string          `json:"zones,omitempty"`
	BackendParameters       map[string]string `json:"backend_parameters,omitempty"`
	BackendParametersStrict bool              `json:"backend_parameters_strict,omitempty"`
}

// tesExecutor is a command of a task.
type tesExecutor struct {
	Image       string            `json:"image"`
	Command     []string          `json:"command"`
	Workdir     string            `json:"workdir,omitempty"`
	Stdin       string            `json:"stdin,omitempty"`
	Stdout      string            `json:"stdout,omitempty"`
	Stderr      string            `json:"stderr,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	IgnoreError bool              `json:"ignore_error,omitempty"`
}

// tesTaskLog is what became of a task.
type tesTaskLog struct {
	Logs       []tesExecutorLog  `json:"logs"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	StartTime  string            `json:"start_time,omitempty"`
	EndTime    string            `json:"end_time,omitempty"`
	Outputs    []tesOutputLog    `json:"outputs"`
	SystemLogs []string          `json:"system_logs,omitempty"`
}

// tesExecutorLog is what became of one of its commands.
type tesExecutorLog struct {
	StartTime string `json:"start_time,omitempty"`
	EndTime   string `json:"end_time,omitempty"`
	Stdout    string `json:"stdout,omitempty"`
	Stderr    string `json:"stderr,omitempty"`
	ExitCode  int    `json:"exit_code"`
}

// tesOutputLog is a file that went where it goes.
type tesOutputLog struct {
	URL       string `json:"url"`
	Path      string `json:"path"`
	SizeBytes string `json:"size_bytes"`
}

// tesCreated answers a task that was taken.
type tesCreated struct {
	ID string `json:"id"`
}

// tesCanceled answers a task that was cancelled, or has ended.
type tesCanceled struct{}

// tesList is a page of tasks.
type tesList struct {
	Tasks         []tesTask `json:"tasks"`
	NextPageToken string    `json:"next_page_token,omitempty"`
}

// tesServiceInfo says what this service is.
type tesServiceInfo struct {
	ID                string          `json:"id"`
	Name              string          `json:"name"`
	Type              tesServiceType  `json:"type"`
	Description       string          `json:"description"`
	Organization      tesOrganization `json:"organization"`
	Version           string          `json:"version"`
	Storage           []string        `json:"storage"`
	BackendParameters []string        `json:"tesResources_backend_parameters"`
}

// tesServiceType says by which document the service answers.
type tesServiceType struct {
	Group    string `json:"group"`
	Artifact string `json:"artifact"`
	Version  string `json:"version"`
}

// tesOrganization runs the service.
type tesOrganization struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// tesFailure is the form of an error.
type tesFailure struct {
	StatusCode int    `json:"status_code"`
	Msg        string `json:"msg"`
}

// kept is the document that is attached to a task's job.
type kept struct {
	Task tesTask  `json:"task"`
	Told []string `json:"told,omitempty"` // what of it has no effect
}

func (k *kept) encode() (json.RawMessage, error) { return json.Marshal(k) }

// States of tasks.
const (
	stateUnknown       = "UNKNOWN"
	stateQueued        = "QUEUED"
	stateInitializing  = "INITIALIZING"
	stateRunning       = "RUNNING"
	statePaused        = "PAUSED"
	stateComplete      = "COMPLETE"
	stateExecutorError = "EXECUTOR_ERROR"
	stateSystemError   = "SYSTEM_ERROR"
	stateCanceled      = "CANCELED"
	statePreempted     = "PREEMPTED"
	stateCanceling     = "CANCELING"
)

// states are those that a filter may name: some never match.
var states = []string{
	stateUnknown, stateQueued, stateInitializing, stateRunning, statePaused, stateComplete, stateExecutorError,
	stateSystemError, stateCanceled, statePreempted, stateCanceling,
}

// Types of inputs and outputs.
const (
	typeFile      = "FILE"
	typeDirectory = "DIRECTORY"
)
