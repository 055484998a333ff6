package jobspec

import (
	"encoding/json"
	"fmt"

	"github.com/cloudshare/cloudshare/executor/plan"
)

// The words of a job whose tasks run several commands, for who makes such jobs.
type (
	// Plan is what to run.
	Plan = plan.Plan
	// Step is one command of it.
	Step = plan.Step
	// StepOutput is what it leaves at an absolute path.
	StepOutput = plan.Output
	// StepsRecord is what became of it.
	StepsRecord = plan.Record
	// StepRecord is what became of one command of it.
	StepRecord = plan.StepRecord
)

// Bounds and places of plans.
const (
	MaxSteps       = plan.MaxSteps
	StepsRecordAt  = plan.RecordPath
	StepsOutputsAt = plan.OutFolder + "/"
	StepsTrouble   = plan.Trouble
	StepsSingle    = plan.Single
)

// StepsCommand returns the command of tasks that run a plan.
func StepsCommand() []string { return plan.Command() }

// StepsInput returns the place and the text of a plan, as an input of its job.
func StepsInput(p *Plan) (path, content string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", "", fmt.Errorf("write what to run: %w", err)
	}
	return plan.Path, string(text), nil
}

// ParseStepsRecord reads a record.
func ParseStepsRecord(text []byte) (StepsRecord, error) { return plan.ParseRecord(text) }

// CheckLabel says what is wrong with a label, "" if nothing is.
func CheckLabel(key, value string) string { return checkLabel(key, value) }

// CheckEnv says what is wrong with a variable of a task's environment, "" if nothing is.
func CheckEnv(key, value string) string { return checkEnv(key, value) }
