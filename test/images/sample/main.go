// Command sample is the app of tests, demo and measurements: a server whose behaviour each request and the environment
// set. It is Go and static so that it starts in milliseconds and a cold start measures the system, not the app.
//
// Query parameters of any request (and the environment variable with a default for all requests):
//
//	sleep=MS (SLEEP_MS)     wait before answering        cpu=MS (CPU_MS)       keep one CPU busy before answering
//	memory=MB (MEMORY_MB)   hold this much until the end status=CODE (STATUS)  answer with this status
//	chunks=N, interval=MS, size=BYTES                    stream N chunks, INTERVAL apart
//	file=PATH               answer with a file           exit=CODE, after=MS   end the process, AFTER from now
//
// Paths: / (text), /info and every other (JSON about this process), /headers (JSON of the request as seen here), /echo
// (the body back, streamed), /ws (WebSocket echo), /healthz (readiness: 503 for READY_DELAY_MS after start and after a
// POST to /start-failing), /call?url=URL&timeout=MS (the answer of a GET of that URL, asked from inside the cluster; 504
// after the time-out, by default 60 s).
//
// Environment: PORT, TARGET, START_DELAY_MS (before listening), READY_DELAY_MS, EXIT_AFTER_MS with EXIT_CODE (the process ends by itself),
// EXIT_ON_TERM (on SIGTERM it ends at once, whatever it is doing),
// MAX_CONCURRENCY (more requests at once than this are answered 500).
//
// Every answer has the headers X-Revision, X-Pod, X-In-Flight and X-Max-In-Flight; the last is the most requests that
// were ever here at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

// settings are what the environment sets.
type settings struct {
	port           string
	target         string
	startDelay     time.Duration
	readyDelay     time.Duration
	exitAfter      time.Duration
	exitOnTerm     bool
	exits          bool
	exitCode       int
	maxConcurrency int64
	defaults       url.Values
}

// about is the answer of /info.
type about struct {
	Message       string `json:"message"`
	Service       string `json:"service"`
	Configuration string `json:"configuration"`
	Revision      string `json:"revision"`
	Host          string `json:"host"`
	Protocol      string `json:"protocol"`
	InFlight      int64  `json:"inFlight"`
	MaxInFlight   int64  `json:"maxInFlight"`
	Requests      int64  `json:"requests"`
	UptimeMs      int64  `json:"uptimeMs"`
}

// seen is the answer of /headers.
type seen struct {
	Method     string              `json:"method"`
	Host       string              `json:"host"`
	URI        string              `json:"uri"`
	Protocol   string              `json:"protocol"`
	RemoteAddr string              `json:"remoteAddr"`
	Headers    map[string][]string `json:"headers"`
}

type server struct {
	settings
	hostname    string
	started     time.Time
	inFlight    atomic.Int64
	maxInFlight atomic.Int64
	requests    atomic.Int64
	failing     atomic.Bool
	exit        func(code int)
}

func main() {
	log.SetFlags(log.LUTC | log.Ldate | log.Ltime | log.Lmicroseconds)
	s, err := newServer(os.Getenv, os.Exit)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.run(); err != nil {
		log.Fatal(err)
	}
}

func newServer(env func(string) string, exit func(int)) (*server, error) {
	p := parser{env: env}
	s := &server{
		settings: settings{
			port:           p.text("PORT", "8080"),
			target:         p.text("TARGET", "World"),
			startDelay:     p.milliseconds("START_DELAY_MS"),
			readyDelay:     p.milliseconds("READY_DELAY_MS"),
			exitAfter:      p.milliseconds("EXIT_AFTER_MS"),
			exits:          env("EXIT_AFTER_MS") != "",
			exitOnTerm:     env("EXIT_ON_TERM") != "",
			exitCode:       p.number("EXIT_CODE", 1),
			maxConcurrency: int64(p.number("MAX_CONCURRENCY", 0)),
			defaults: url.Values{
				"sleep":  {p.text("SLEEP_MS", "0")},
				"cpu":    {p.text("CPU_MS", "0")},
				"memory": {p.text("MEMORY_MB", "0")},
				"status": {p.text("STATUS", "200")},
			},
		},
		started: time.Now(),
		exit:    exit,
	}
	hostname, err := os.Hostname()
	s.hostname = hostname
	return s, errors.Join(p.err, err)
}

func (s *server) run() error {
	if s.exits {
		time.AfterFunc(s.exitAfter, func() { s.leave(s.exitCode) })
	}
	time.Sleep(s.startDelay)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	listener := &http.Server{Addr: ":" + s.port, Handler: s, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- listener.ListenAndServe() }()
	log.Printf("listening on %s after %v", s.port, time.Since(s.started))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		if s.exitOnTerm {
			s.leave(0)
		}
		log.Print("stopping after the requests in flight")
		return listener.Shutdown(context.Background())
	}
}

func (s *server) leave(code int) {
	log.Printf("exit %d, as asked", code)
	s.exit(code)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.serveControl(w, r) {
		return
	}
	s.requests.Add(1)
	now := s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	for {
		most := s.maxInFlight.Load()
		if now <= most || s.maxInFlight.CompareAndSwap(most, now) {
			break
		}
	}
	header := w.Header()
	header.Set("X-Revision", os.Getenv("K_REVISION"))
	header.Set("X-Pod", s.hostname)
	header.Set("X-In-Flight", strconv.FormatInt(now, 10))
	header.Set("X-Max-In-Flight", strconv.FormatInt(s.maxInFlight.Load(), 10))
	if s.maxConcurrency > 0 && now > s.maxConcurrency {
		http.Error(w, fmt.Sprintf("%d requests at once, limit %d", now, s.maxConcurrency), http.StatusInternalServerError)
		return
	}
	k, err := parseKnobs(r.URL.Query(), s.defaults)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.act(r.Context(), k); err != nil {
		log.Printf("%s %s: %v", r.Method, r.URL, err)
		return
	}
	if err := s.answer(w, r, k, now); err != nil {
		log.Printf("%s %s: %v", r.Method, r.URL, err)
	}
}

// serveControl answers what is about the process and is not counted as a request.
func (s *server) serveControl(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == "/healthz":
		if s.failing.Load() || time.Since(s.started) < s.startDelay+s.readyDelay {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		} else {
			fmt.Fprintln(w, "ok")
		}
	case r.URL.Path == "/start-failing" && r.Method == http.MethodPost:
		s.failing.Store(true)
		fmt.Fprintln(w, "readiness fails from now on")
	default:
		return false
	}
	return true
}

// act does what happens before the answer.
func (s *server) act(ctx context.Context, k knobs) error {
	if k.exits {
		time.AfterFunc(k.after, func() { s.leave(k.exit) })
		if k.after == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	ballast := make([]byte, k.memoryMB<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	defer runtime.KeepAlive(ballast)
	for until := time.Now().Add(k.cpu); time.Now().Before(until); {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	select {
	case <-time.After(k.sleep):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, k knobs, now int64) error {
	switch {
	case r.URL.Path == "/ws":
		return s.echoSocket(w, r)
	case r.URL.Path == "/echo":
		return echoBody(w, r, k.status)
	case r.URL.Path == "/call":
		return call(w, r, k)
	case k.chunks > 0:
		return stream(w, r, k)
	case k.file != "":
		return sendFile(w, k)
	case r.URL.Path == "/headers":
		return sendJSON(w, k.status, seen{
			Method:     r.Method,
			Host:       r.Host,
			URI:        r.RequestURI,
			Protocol:   r.Proto,
			RemoteAddr: r.RemoteAddr,
			Headers:    r.Header,
		})
	case r.URL.Path == "/":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(k.status)
		_, err := fmt.Fprintf(w, "Hello %s!\n", s.target)
		return err
	default:
		return sendJSON(w, k.status, about{
			Message:       fmt.Sprintf("Hello %s!", s.target),
			Service:       os.Getenv("K_SERVICE"),
			Configuration: os.Getenv("K_CONFIGURATION"),
			Revision:      os.Getenv("K_REVISION"),
			Host:          s.hostname,
			Protocol:      r.Proto,
			InFlight:      now,
			MaxInFlight:   s.maxInFlight.Load(),
			Requests:      s.requests.Load(),
			UptimeMs:      time.Since(s.started).Milliseconds(),
		})
	}
}

func sendJSON(w http.ResponseWriter, status int, body any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(body)
}

// call passes on what another server says to a GET, within its time-out.
func call(w http.ResponseWriter, r *http.Request, k knobs) error {
	ctx, cancel := context.WithTimeout(r.Context(), k.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL.Query().Get("url"), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if errors.Is(err, context.DeadlineExceeded) {
		http.Error(w, fmt.Sprintf("no answer in %v", k.timeout), http.StatusGatewayTimeout)
		return nil
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return nil
	}
	defer response.Body.Close()
	w.WriteHeader(response.StatusCode)
	_, err = io.Copy(w, response.Body)
	return err
}

func sendFile(w http.ResponseWriter, k knobs) error {
	file, err := os.Open(k.file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil
	}
	defer file.Close()
	w.WriteHeader(k.status)
	_, err = io.Copy(w, file)
	return err
}

func stream(w http.ResponseWriter, r *http.Request, k knobs) error {
	controller := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(k.status)
	if err := controller.Flush(); err != nil {
		return err
	}
	for i := range k.chunks {
		if i > 0 {
			select {
			case <-time.After(k.interval):
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
		chunk := fmt.Sprintf("%d\n", i)
		if pad := k.size - len(chunk); pad > 0 {
			chunk = strings.Repeat(".", pad) + chunk
		}
		if _, err := io.WriteString(w, chunk); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// echoBody sends each piece of the body back as it comes, while the rest is still on its way.
func echoBody(w http.ResponseWriter, r *http.Request, status int) error {
	controller := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		if err := controller.EnableFullDuplex(); err != nil {
			return err
		}
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.WriteHeader(status)
	if err := controller.Flush(); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := controller.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *server) echoSocket(w http.ResponseWriter, r *http.Request) error {
	// Any origin: it is a test server.
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return err
	}
	defer socket.CloseNow()
	for {
		kind, message, err := socket.Read(r.Context())
		if websocket.CloseStatus(err) != -1 {
			return nil
		}
		if err != nil {
			return err
		}
		if err := socket.Write(r.Context(), kind, message); err != nil {
			return err
		}
	}
}
