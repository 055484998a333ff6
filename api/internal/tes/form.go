package tes

import "encoding/json"

// Task is a task in the words of TES 1.1. What the server sets is left out of what is kept.
type Task struct {
	ID           string            `json:"id,omitempty"`
	State        string            `json:"state,omitempty"`
	Name         string            `json:"name,omitempty"`
	Description  string            `json:"description,omitempty"`
	Inputs       []Input           `json:"inputs,omitempty"`
	Outputs      []Output          `json:"outputs,omitempty"`
	Resources    *Resources        `json:"resources,omitempty"`
	Executors    []Executor        `json:"executors,omitempty"`
	Volumes      []string          `json:"volumes,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Logs         []TaskLog         `json:"logs,omitempty"`
	CreationTime string            `json:"creation_time,omitempty"`
}

// Input is a file or a directory that a task finds.
type Input struct {
	Name        string  `json:"name,omitempty"`
	Description string  `json:"description,omitempty"`
	URL         string  `json:"url,omitempty"`
	Path        string  `json:"path"`
	Type        string  `json:"type,omitempty"`
	Content     *string `json:"content,omitempty"`
	Streamable  bool    `json:"streamable,omitempty"`
}

// Output is what a task leaves, and where it goes.
type Output struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url"`
	Path        string `json:"path"`
	PathPrefix  string `json:"path_prefix,omitempty"`
	Type        string `json:"type,omitempty"`
}

// Resources are what a task needs.
type Resources struct {
	CPUCores                *int64            `json:"cpu_cores,omitempty"`
	Preemptible             bool              `json:"preemptible,omitempty"`
	RAM                     *float64          `json:"ram_gb,omitempty"`
	Disk                    *float64          `json:"disk_gb,omitempty"`
	Zones                   []string          `json:"zones,omitempty"`
	BackendParameters       map[string]string `json:"backend_parameters,omitempty"`
	BackendParametersStrict bool              `json:"backend_parameters_strict,omitempty"`
}

// Executor is a command of a task.
type Executor struct {
	Image       string            `json:"image"`
	Command     []string          `json:"command"`
	Workdir     string            `json:"workdir,omitempty"`
	Stdin       string            `json:"stdin,omitempty"`
	Stdout      string            `json:"stdout,omitempty"`
	Stderr      string            `json:"stderr,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	IgnoreError bool              `json:"ignore_error,omitempty"`
}

// TaskLog is what became of a task.
type TaskLog struct {
	Logs       []ExecutorLog     `json:"logs"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	StartTime  string            `json:"start_time,omitempty"`
	EndTime    string            `json:"end_time,omitempty"`
	Outputs    []OutputLog       `json:"outputs"`
	SystemLogs []string          `json:"system_logs,omitempty"`
}

// ExecutorLog is what became of one of its commands.
type ExecutorLog struct {
	StartTime string `json:"start_time,omitempty"`
	EndTime   string `json:"end_time,omitempty"`
	Stdout    string `json:"stdout,omitempty"`
	Stderr    string `json:"stderr,omitempty"`
	ExitCode  int    `json:"exit_code"`
}

// OutputLog is a file that went where it goes.
type OutputLog struct {
	URL       string `json:"url"`
	Path      string `json:"path"`
	SizeBytes string `json:"size_bytes"`
}

// Created answers a task that was taken.
type Created struct {
	ID string `json:"id"`
}

// List is a page of tasks.
type List struct {
	Tasks         []Task `json:"tasks"`
	NextPageToken string `json:"next_page_token,omitempty"`
}

// ServiceInfo says what this service is.
type ServiceInfo struct {
	ID                string       `json:"id"`
	Name              string       `json:"name"`
	Type              ServiceType  `json:"type"`
	Description       string       `json:"description"`
	Organization      Organization `json:"organization"`
	Version           string       `json:"version"`
	Storage           []string     `json:"storage"`
	BackendParameters []string     `json:"tesResources_backend_parameters"`
}

// ServiceType says by which document the service answers.
type ServiceType struct {
	Group    string `json:"group"`
	Artifact string `json:"artifact"`
	Version  string `json:"version"`
}

// Organization runs the service.
type Organization struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Failure is the form of an error.
type Failure struct {
	StatusCode int    `json:"status_code"`
	Msg        string `json:"msg"`
}

// kept is the document that is attached to a task's job.
type kept struct {
	Task Task     `json:"task"`
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
