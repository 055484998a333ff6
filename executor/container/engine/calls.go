package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Info is what an engine says of itself and its machine.
type Info struct {
	ServerVersion string
	NCPU          int
	MemTotal      int64
	CPUQuota      bool `json:"CpuCfsQuota"` // containers can be limited to a time of the processors
	CPUSet        bool // containers can be tied to processors
	MemoryLimit   bool // containers can be limited in memory
	// RootDir is where it has images and containers, Warnings what of its machine it cannot use.
	RootDir  string `json:"DockerRootDir"`
	Warnings []string
}

// Info asks the engine.
func (c *Client) Info(ctx context.Context) (i Info, err error) {
	return i, c.call(ctx, http.MethodGet, "/info", nil, nil, &i)
}

// Image is what a handler must know of one.
type Image struct {
	ID     string `json:"Id"`
	Config struct {
		Entrypoint, Cmd, Env []string
		WorkingDir           string
		Healthcheck          *Healthcheck
	}
}

// Image returns a local one; ErrNotFound if it is not there.
func (c *Client) Image(ctx context.Context, ref string) (i Image, err error) {
	return i, c.call(ctx, http.MethodGet, "/images/"+ref+"/json", nil, nil, &i)
}

// Progress of a pull: layers, and bytes of those whose size is known.
type Progress struct {
	Layers, Done   int
	Bytes, Fetched int64
}

// pulling is one message of a pull.
type pulling struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Error    string `json:"error"`
	Progress struct {
		Current, Total int64
	} `json:"progressDetail"`
}

// Pull fetches an image and tells how far it is whenever the engine says anything. An error of the registry is a
// *Refusal.
func (c *Client) Pull(ctx context.Context, ref string, told func(Progress)) error {
	body, err := c.open(ctx, http.MethodPost, "/images/create", url.Values{"fromImage": {ref}}, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	p := pull{layers: map[string]pulling{}}
	for d := json.NewDecoder(body); ; {
		var m pulling
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("pull %s: %w: %w", ref, ErrAway, err)
		case m.Error != "":
			return &Refusal{kind: ErrRefused, Message: oneLine(m.Error)}
		}
		p.update(m)
		told(p.Progress)
	}
}

// pull sums messages up.
type pull struct {
	Progress
	layers map[string]pulling
}

// maxLayers bounds what is remembered of a pull; registries allow 127.
const maxLayers = 1000

func (p *pull) update(m pulling) {
	old, known := p.layers[m.ID]
	if m.ID == "" || !known && (m.Status != "Pulling fs layer" || len(p.layers) == maxLayers) {
		return
	}
	p.layers[m.ID] = m
	if !known {
		p.Layers++
		return
	}
	done := m.Status == "Pull complete" && old.Status != m.Status
	switch {
	case done:
		p.Done++
	case m.Status == "Downloading" && old.Status == m.Status:
		p.Bytes += m.Progress.Total - old.Progress.Total
		p.Fetched += m.Progress.Current - old.Progress.Current
	case m.Status == "Downloading":
		p.Bytes += m.Progress.Total
		p.Fetched += m.Progress.Current
	default:
		p.layers[m.ID] = pulling{Status: m.Status}
	}
}

// Create makes a container that has not started.
func (c *Client) Create(ctx context.Context, name string, spec Spec) (id string, err error) {
	var out struct {
		ID string `json:"Id"`
	}
	err = c.call(ctx, http.MethodPost, "/containers/create", url.Values{"name": {name}}, spec, &out)
	return out.ID, err
}

// Start starts a container; one that runs already is no error.
func (c *Client) Start(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, "/containers/"+id+"/start", nil, nil, nil)
}

// Remove kills a container and takes it away; one that is not there is no error.
func (c *Client) Remove(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodDelete, "/containers/"+id, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Container is one as the engine has it.
type Container struct {
	ID    string `json:"Id"`
	State struct {
		Status    string // created, running, exited, …
		Running   bool
		OOMKilled bool
		ExitCode  int
		Error     string
	}
	// GraphDriver tells where the engine has what it writes, by names that the driver has for its folders.
	GraphDriver struct{ Data map[string]string }
}

// Inspect returns a container, by name or id.
func (c *Client) Inspect(ctx context.Context, id string) (o Container, err error) {
	return o, c.call(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, &o)
}

// LayerSize returns how many bytes a container has changed of its image, as the engine counts them: it takes its time.
func (c *Client) LayerSize(ctx context.Context, id string) (bytes int64, err error) {
	var o struct{ SizeRw int64 }
	err = c.call(ctx, http.MethodGet, "/containers/"+id+"/json", url.Values{"size": {"1"}}, nil, &o)
	return o.SizeRw, err
}

// Listed is a container in a list.
type Listed struct {
	ID     string `json:"Id"`
	State  string
	Labels map[string]string
}

// List returns all containers with a label "k=v", running or not.
func (c *Client) List(ctx context.Context, label string) (l []Listed, err error) {
	q := url.Values{"all": {"1"}, "filters": {filters(map[string][]string{"label": {label}})}}
	return l, c.call(ctx, http.MethodGet, "/containers/json", q, nil, &l)
}

// Event is something that happened to a container.
type Event struct {
	Action string // create, start, die, …
	ID     string
	Labels map[string]string
}

// Events calls told for what happens to containers with a label from now on,
// until ctx ends or the engine is away; begun is called once it listens.
func (c *Client) Events(ctx context.Context, label string, begun func(), told func(Event)) error {
	q := url.Values{"filters": {filters(map[string][]string{
		"type": {"container"}, "label": {label}, "event": {"create", "die"},
	})}}
	body, err := c.open(ctx, http.MethodGet, "/events", q, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	begun()
	for d := json.NewDecoder(body); ; {
		var m struct {
			Action string
			Actor  struct {
				ID         string
				Attributes map[string]string
			}
		}
		if err := d.Decode(&m); err != nil {
			return fmt.Errorf("hear its events: %w: %w", ErrAway, err)
		}
		told(Event{Action: m.Action, ID: m.Actor.ID, Labels: m.Actor.Attributes})
	}
}

func filters(f map[string][]string) string {
	b, err := json.Marshal(f)
	if err != nil {
		return "{}" // maps of strings can be encoded
	}
	return string(b)
}
