package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func start(t *testing.T, env map[string]string) (*httptest.Server, *server, chan int) {
	t.Helper()
	exits := make(chan int, 1)
	s, err := newServer(func(key string) string { return env[key] }, func(code int) { exits <- code })
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewUnstartedServer(s)
	listener.Config.Protocols = new(http.Protocols)
	listener.Config.Protocols.SetHTTP1(true)
	listener.Config.Protocols.SetUnencryptedHTTP2(true)
	listener.Start()
	t.Cleanup(listener.Close)
	return listener, s, exits
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestQueryAndEnvironmentSetTheAnswer(t *testing.T) {
	listener, _, _ := start(t, map[string]string{"TARGET": "sea", "STATUS": "202"})
	for _, row := range []struct {
		path   string
		status int
		body   string
	}{
		{"/", 202, "Hello sea!\n"},
		{"/?status=404", 404, "Hello sea!\n"},
		{"/?chunks=3&size=4", 202, "..0\n..1\n..2\n"},
		{"/?sleep=x", 400, "sleep: \"x\", expected a whole number, 0 or more\n"},
		{"/call?url=" + listener.URL + "/?status=201", 201, "Hello sea!\n"},
		{"/call?timeout=20&url=" + listener.URL + "/?sleep=60000", 504, "no answer in 20ms\n"},
		{"/call?url=%00", 400, "parse \"\\x00\": net/url: invalid control character in URL\n"},
		{"/?file=/absent", 404, "open /absent: no such file or directory\n"},
	} {
		response, body := get(t, listener.URL+row.path)
		if response.StatusCode != row.status || body != row.body {
			t.Errorf("%s: got %d %q, want %d %q", row.path, response.StatusCode, body, row.status, row.body)
		}
	}
}

func TestReportsTheMostRequestsAtOnce(t *testing.T) {
	listener, _, _ := start(t, map[string]string{"SLEEP_MS": "200"})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { get(t, listener.URL) })
	}
	all.Wait()
	_, body := get(t, listener.URL+"/info")
	var info about
	if err := json.Unmarshal([]byte(body), &info); err != nil {
		t.Fatal(err)
	}
	if info.MaxInFlight != 3 || info.InFlight != 1 || info.Requests != 4 {
		t.Errorf("got %+v", info)
	}
}

func TestRefusesMoreThanItsMaximum(t *testing.T) {
	listener, s, _ := start(t, map[string]string{"MAX_CONCURRENCY": "1"})
	s.inFlight.Add(1)
	if response, _ := get(t, listener.URL); response.StatusCode != 500 {
		t.Errorf("got %d", response.StatusCode)
	}
}

func TestReadinessFollowsDelayAndOrder(t *testing.T) {
	listener, _, _ := start(t, map[string]string{"READY_DELAY_MS": "100"})
	if response, _ := get(t, listener.URL+"/healthz"); response.StatusCode != 503 {
		t.Errorf("before the delay: %d", response.StatusCode)
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		if response, _ := get(t, listener.URL+"/healthz"); response.StatusCode == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("never ready")
		}
	}
	if _, err := http.Post(listener.URL+"/start-failing", "", nil); err != nil {
		t.Fatal(err)
	}
	if response, _ := get(t, listener.URL+"/healthz"); response.StatusCode != 503 {
		t.Errorf("after start-failing: %d", response.StatusCode)
	}
}

func TestExitEndsTheProcess(t *testing.T) {
	listener, _, exits := start(t, nil)
	get(t, listener.URL+"/?exit=7&after=1")
	if code := <-exits; code != 7 {
		t.Errorf("got %d", code)
	}
}

func TestSpeaksHTTP2WithoutTLS(t *testing.T) {
	listener, _, _ := start(t, nil)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	response, err := (&http.Client{Transport: transport}).Post(listener.URL+"/echo", "text/plain", strings.NewReader("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "a" || response.ProtoMajor != 2 {
		t.Errorf("got %q over %s, %v", body, response.Proto, err)
	}
}

func TestEchoesWebSocketMessages(t *testing.T) {
	listener, _, _ := start(t, nil)
	socket, _, err := websocket.Dial(t.Context(), listener.URL+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if err := socket.Write(t.Context(), websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	kind, message, err := socket.Read(t.Context())
	if err != nil || kind != websocket.MessageText || string(message) != "hello" {
		t.Errorf("got %v %q %v", kind, message, err)
	}
}
