package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/config"
	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/credentials"
	"github.com/cloudshare/cloudshare/fsm/roster"
	"github.com/cloudshare/cloudshare/fsm/signature"
	"github.com/cloudshare/cloudshare/node/coord/raftlog"
	"github.com/cloudshare/cloudshare/node/coord/relay"
	"github.com/cloudshare/cloudshare/node/coord/truststore"
)

// has reports whether a data folder has a file.
func has(dataDir, name string) bool {
	_, err := os.Lstat(filepath.Join(dataDir, name))
	return err == nil
}

// settleKey finishes the replacement of the site's key by the saved roster; if that does not have the key that was to
// follow, the members are asked: they may have it, and tell one who shows the key of before nothing. In a tree of
// ZooKeeper this broker reads that itself, whatever its key. See credentials.Settle.
func settleKey(ctx context.Context, cfg config.Config, log zerolog.Logger) (settled bool, err error) {
	settled, err = credentials.Settle(cfg.DataDir, cfg.Site)
	if err != nil || cfg.Coordination != config.Raft || !has(cfg.DataDir, config.NextKeyFile) {
		return settled, err
	}
	members, err := raftlog.SavedPeers(raftlog.Offline{Dir: filepath.Join(cfg.DataDir, config.RaftDir), Logger: log})
	if errors.Is(err, raftlog.ErrNoData) {
		return settled, nil // it has never been a member
	}
	var r truststore.Roster
	taken := false
	if err == nil {
		r, taken, err = credentials.Confirm(ctx, cfg.DataDir, cfg.Site, cfg.Deny, members)
	}
	if !taken { // also if the log cannot be read: whoever opens it next says why, or mends it
		log.Warn().Err(err).Str("file", config.NextKeyFile).Msg("whether the members have this site's next key is not known: " +
			"starting with the one of before; if they refuse that, start this broker again, else run cloudshare key rotate again")
		return settled, nil
	}
	if err = credentials.Learn(cfg.DataDir, r); err != nil {
		return settled, err
	}
	log.Info().Uint64("entry", r.Index).Msg("the members have this site's next key: it takes the place of the one of before")
	return credentials.Settle(cfg.DataDir, cfg.Site)
}

// isSuperseded reports whether the members have this site's next key, and says so: the one of now opens nothing.
func (m *siteMember) isSuperseded(ctx context.Context, members []relay.Peer) bool {
	r, taken, err := credentials.Confirm(ctx, m.cfg.DataDir, m.cfg.Site, m.cfg.Deny, members)
	if !taken {
		m.log.Debug().Err(err).Msg("the members were asked for this site's next key")
		return false
	}
	why := "the members have this site's next key (key.next in its data_dir), and refuse the one that this broker was " +
		"started with: restart it, which puts the next one in place"
	m.refused.Store(&why)
	m.log.Error().Uint64("entry", r.Index).AnErr("kept", m.Trust.Update(r)).Msg(why)
	return true
}

// keyHint says what may be wrong with this site's key, if the others do not know it; "" = nothing is known.
func (m *siteMember) keyHint(err error) string {
	switch {
	case !errors.Is(err, relay.ErrUnknownKey):
	case has(m.cfg.DataDir, config.NextKeyFile):
		return "; key.next is in its data_dir, and may be in force: more than half of the electors are asked"
	case has(m.cfg.DataDir, config.FormerKeyFile):
		return "; the key of before is key.former in its data_dir: if cloudshare members at another site shows that, put it " +
			"back as key, and the file roster of a member that you trust"
	}
	return ""
}

// provenKey lets go the key of before once the log has the one of now.
func (m *siteMember) provenKey(c roster.Contents) {
	own := signature.Key(m.Key.Public())
	if !has(m.cfg.DataDir, config.FormerKeyFile) ||
		!slices.ContainsFunc(c.Members, func(x *roster.Member) bool { return x.Site == m.cfg.Site && x.Key == own }) {
		return
	}
	if err := credentials.Proven(m.cfg.DataDir); err != nil {
		m.log.Warn().Err(err).Msg("the key of before stays: it opens nothing any more")
	}
}
