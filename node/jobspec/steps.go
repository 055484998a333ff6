package jobspec

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/executor/steps"
)

// The words of a job whose tasks run several commands, for who makes such jobs.
type (
	// Plan is what to run.
	Plan = steps.Plan
	// Step is one command of it.
	Step = steps.Step
	// StepOutput is what it leaves at an absolute path.
	StepOutput = steps.Output
	// StepsRecord is what became of it.
	StepsRecord = steps.Record
	// StepRecord is what became of one command of it.
	StepRecord = steps.StepRecord
)

// Bounds and places of plans.
const (
	MaxSteps       = steps.MaxSteps
	StepsRecordAt  = steps.RecordPath
	StepsOutputsAt = steps.OutFolder + "/"
	StepsTrouble   = steps.Trouble
	StepsSingle    = steps.Single
)

// StepsCommand returns the command of tasks that run a plan.
func StepsCommand() []string { return steps.Command() }

// StepsInput returns the place and the text of a plan, as an input of its job.
func StepsInput(p *Plan) (path, content string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", "", fmt.Errorf("write what to run: %w", err)
	}
	return steps.PlanPath, string(text), nil
}

// ParseStepsRecord reads a record.
func ParseStepsRecord(text []byte) (StepsRecord, error) { return steps.ParseRecord(text) }

// CheckLabel says what is wrong with a label, "" if nothing is.
func CheckLabel(key, value string) string { return checkLabel(key, value) }

// CheckEnv says what is wrong with a variable of a task's environment, "" if nothing is.
func CheckEnv(key, value string) string { return checkEnv(key, value) }
