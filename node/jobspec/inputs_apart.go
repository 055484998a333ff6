package jobspec

import (
	"fmt"
	"slices"

	"github.com/cloudshare/cloudshare/executor"
)

// checkApart checks that no two inputs stand at one place, as far as a spec tells: what is in a directory only its
// manifest says.
func (s *Spec) checkApart() error {
	places := make([]int, 0, len(s.Inputs)) // of files
	at := map[string]int{}
	for i := range s.Inputs {
		if s.Inputs[i].From == FromDirectory {
			continue
		}
		places, at[s.Inputs[i].Path] = append(places, i), i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return executor.ComparePaths(s.Inputs[a].Path, s.Inputs[b].Path)
	})
	for n, i := range places[min(1, len(places)):] {
		if err := executor.CheckApart(s.Inputs[places[n]].Path, s.Inputs[i].Path); err != nil {
			return pathError(max(i, places[n]), err.Error())
		}
	}
	for i := range s.Inputs {
		if s.Inputs[i].From != FromDirectory {
			continue
		}
		if err := s.checkFolder(i, at); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder checks that a directory is not at the place of a file, or below one.
func (s *Spec) checkFolder(i int, at map[string]int) error {
	path := s.Inputs[i].Path
	for end := range len(path) + 1 {
		if end < len(path) && path[end] != '/' {
			continue
		}
		if file, taken := at[path[:end]]; taken {
			return pathError(i, fmt.Sprintf("is the place of a file, or below it: that of inputs.%d", file))
		}
	}
	return nil
}
