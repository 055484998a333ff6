package history

import (
	"errors"
	"fmt"

	"github.com/cloudshare/cloudshare/fsm/command"
	"github.com/cloudshare/cloudshare/node/coord/compare"
)

// ErrStatement reports a record that holds no statement.
var ErrStatement = errors.New("a statement is malformed")

// ParseStatement reads the contents of a record of KindStatement: what was signed, and for which lineage.
func ParseStatement(b []byte) (lineage [16]byte, s compare.Statement, err error) {
	if len(b) < len(lineage) {
		return lineage, s, fmt.Errorf("%w: %d bytes", ErrStatement, len(b))
	}
	s, err = compare.ParseStatement(b[copy(lineage[:], b):])
	if err != nil || !command.ValidSite(s.Site) {
		return lineage, s, fmt.Errorf("%w: %d bytes", ErrStatement, len(b))
	}
	return lineage, s, nil
}
