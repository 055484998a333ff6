package outputs

import (
	"errors"
	"os"
)

// checkFolder makes the store's folders again if somebody has removed them: what was
// kept is lost, and the next outputs are not. REQUIRES: s.writing held.
func (s *Store) checkFolder() error {
	ours, err := s.folder.at().Stat(".")
	if err != nil {
		return err
	}
	there, err := os.Lstat(s.cfg.Dir)
	_, apart := s.folder.at().Lstat(apartFolder)
	if err == nil && os.SameFile(ours, there) && apart == nil {
		return nil
	}
	for _, err := range []error{err, apart} {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	s.cfg.Logger.Warn().Str("folder", s.cfg.Dir).Msg("the folder of kept outputs was removed; making it again")
	return s.beginAgain()
}

// beginAgain opens the folder as it is now.
func (s *Store) beginAgain() error {
	if s.file != nil {
		_ = s.file.Close()
		s.file, s.entries = nil, nil
	}
	before := s.folder.at()
	if err := s.folder.openRoot(); err != nil {
		return err
	}
	_ = before.Close()
	s.mu.Lock()
	s.index, s.segments, s.removed = map[uint64]uint64{}, nil, nil
	s.unread, s.unreadBy = nil, nil
	s.mu.Unlock()
	return s.load()
}

// checkActive gives up the active segment if somebody has removed its file: nobody
// would find what is added to it. REQUIRES: s.writing held.
func (s *Store) checkActive() {
	if s.file == nil {
		return
	}
	ours, err := s.file.Stat()
	g := s.segments[len(s.segments)-1]
	there, terr := s.folder.at().Lstat(fileOf(g.number, segmentExt))
	if MayPass(err) || MayPass(terr) { // then who writes is told
		return
	}
	if err == nil && terr == nil && os.SameFile(ours, there) {
		return
	}
	s.cfg.Logger.Warn().Str("segment", s.file.Name()).Msg("a file of kept outputs was removed by others; a new one begins")
	_ = s.file.Close()
	s.file = nil
	s.forget(g, nil, false)
}
