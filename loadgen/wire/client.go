package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"firstbreach/loadgen/arrival"
)

const (
	defaultConnections = 256
	// idleConnTime is below the 5 s after which uvicorn and llama.cpp close an idle connection, so
	// that a request is not written into a connection that is just being closed.
	idleConnTime = 4 * time.Second
	// readBuffer is how much of a body is taken at once: what the transport reads of a connection at
	// once. Every stream has one.
	readBuffer = 4 << 10
)

// Timeouts are the deadlines of one request, each on its own; 0 means none. Connect counts from
// the attempt, TLS included; FirstToken and Total from the write; Idle from the latest event.
type Timeouts struct {
	Connect    time.Duration
	FirstToken time.Duration
	Idle       time.Duration
	Total      time.Duration
}

// Options say what a Client talks to and how.
type Options struct {
	BaseURL  string // with or without the API's own /v1 or /api at its end
	API      string // name of a dialect
	APIKey   string // sent as Authorization: Bearer; "" for none
	Headers  map[string]string
	Timeouts Timeouts
	// MaxConnections is how many idle connections are kept: the greatest number of requests that
	// are in flight at once. 0 means 256.
	MaxConnections int
	// TLS is used for https; nil means the system's roots.
	TLS *tls.Config
	// Proxy says which proxy a request goes through; nil means directly.
	Proxy func(*http.Request) (*url.URL, error)
}

// Client sends requests of one dialect to one endpoint, each on a connection of its own over
// HTTP/1.1, because the streams of one HTTP/2 connection share a window and their stamps. It
// follows no redirect and sends no request twice. It is safe for use by several goroutines.
type Client struct {
	dialect   Dialect
	url       *url.URL
	header    http.Header
	timeouts  Timeouts
	secrets   []string
	transport *http.Transport
	dialer    *arrival.Dialer
	buffers   sync.Pool
	reads     reads
	// fresh is set once the server was seen to close a connection that was to be used again.
	fresh atomic.Bool
}

// NewClient checks o and returns a Client. It connects to nothing.
func NewClient(o Options) (*Client, error) {
	dialect, err := ByName(o.API)
	if err != nil {
		return nil, err
	}
	u, err := endpoint(o.BaseURL, dialect.Path())
	if err != nil {
		return nil, err
	}
	c := &Client{dialect: dialect, timeouts: o.Timeouts}
	c.header, c.secrets, err = headers(o, u)
	if err != nil {
		return nil, err
	}
	u.User = nil
	c.url = u
	c.transport, c.dialer = newTransport(o)
	c.buffers.New = func() any {
		b := bytes.Repeat([]byte{unwritten}, readBuffer)
		return &b
	}
	return c, nil
}

// Dialect returns the dialect that the client speaks.
func (c *Client) Dialect() Dialect { return c.dialect }

// URL returns the address that requests are sent to, without credentials.
func (c *Client) URL() string { return c.url.String() }

// Reads is how the text chunks of all answers so far were read.
func (c *Client) Reads() Reads { return c.reads.snapshot() }

// StampReads has arrivals stamped when they are read from now on; call it before the first request.
func (c *Client) StampReads() { c.dialer.ReadStamps = true }

// CloseIdle closes the connections that no request uses.
func (c *Client) CloseIdle() { c.transport.CloseIdleConnections() }

// Do sends one request with this body and reads its answer to the end. It always returns a
// Result with an outcome; cancelling ctx ends the request as aborted.
func (c *Client) Do(ctx context.Context, body []byte) Result { return c.DoTapped(ctx, body, nil) }

// Tap is shown each object of a stream that brought text, with the latest and the earliest time at
// which it can have come. It must not keep the object, and must be quick.
type Tap func(object []byte, latest, earliest time.Time)

// DoTapped is Do with a tap on the stream, for whoever measures the client itself.
func (c *Client) DoTapped(ctx context.Context, body []byte, tap Tap) Result {
	ctx, x := newExchange(ctx, c)
	x.body.tap = tap
	defer x.close()
	resp, err := x.roundTrip(ctx, body)
	if err != nil {
		x.err = err
		return x.result()
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		x.readAnswer(resp)
	} else {
		x.readRefusal(resp)
	}
	return x.result()
}

// endpoint joins the base URL and a dialect's path. People give the base with and without the
// version at its end, so a first path element that is there already is not added again.
func endpoint(base, path string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil {
		// The error of url.Parse quotes the URL, which may hold a password.
		return nil, errors.New("the target's URL cannot be parsed: write it as http://host:port")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the target's URL needs a scheme and a host, as in http://127.0.0.1:8000; it has scheme %q and host %q", u.Scheme, u.Host)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the target's URL is a base to which the API's path is added: leave out everything from ? or # on")
	}
	first := "/" + strings.SplitN(path[1:], "/", 2)[0]
	u.Path = strings.TrimSuffix(u.Path, path)
	u.Path = strings.TrimSuffix(u.Path, first) + path
	u.RawPath = ""
	return u, nil
}

// headers builds the request's headers and lists the secrets among them, so that they can be
// struck from errors.
func headers(o Options, u *url.URL) (http.Header, []string, error) {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"text/event-stream, application/x-ndjson, application/json"},
		// Compression would delay what a proxy passes on; identity also keeps gzip from being the default.
		"Accept-Encoding": {"identity"},
		"User-Agent":      {"firstbreach-loadgen"},
	}
	var secrets []string
	for name, value := range o.Headers {
		if strings.ContainsAny(name, "\r\n: ") || strings.ContainsAny(value, "\r\n") || name == "" {
			return nil, nil, fmt.Errorf("header %q: a name has no blank or colon, and name and value have no line break", name)
		}
		h.Set(name, value)
		if len(value) >= 8 && secretName(name) {
			secrets = append(secrets, value)
		}
	}
	if user := u.User; user != nil {
		password, _ := user.Password()
		r := http.Request{Header: h}
		r.SetBasicAuth(user.Username(), password)
		if password != "" {
			secrets = append(secrets, password)
		}
	}
	if o.APIKey != "" {
		if strings.ContainsAny(o.APIKey, "\r\n") {
			return nil, nil, errors.New("the API key has a line break in it: check the file or variable it is read from")
		}
		h.Set("Authorization", "Bearer "+o.APIKey)
		secrets = append(secrets, o.APIKey)
	}
	return h, everyForm(secrets), nil
}

// everyForm lists secrets in the forms in which a server may echo them: as they are, in base64, escaped
// for an address.
func everyForm(secrets []string) (all []string) {
	for _, s := range secrets {
		all = append(all, s, url.QueryEscape(s), url.PathEscape(s))
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, e.EncodeToString([]byte(s)))
		}
	}
	return all
}

func secretName(header string) bool {
	header = strings.ToLower(header)
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie"}, func(word string) bool {
		return strings.Contains(header, word)
	})
}

func newTransport(o Options) (*http.Transport, *arrival.Dialer) {
	n := o.MaxConnections
	if n <= 0 {
		n = defaultConnections
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := arrival.NewDialer(net.Dialer{Timeout: o.Timeouts.Connect, KeepAlive: 15 * time.Second})
	config := o.TLS
	if config != nil {
		config = config.Clone()
	}
	return &http.Transport{
		Proxy:               o.Proxy,
		DialContext:         dialer.DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: o.Timeouts.Connect,
		DisableCompression:  true,
		MaxIdleConnsPerHost: n,
		IdleConnTimeout:     idleConnTime,
		Protocols:           protocols,
	}, dialer
}
