package query

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Bodies as Prometheus, VictoriaMetrics and Thanos write them.
func bodies() map[string]string {
	return map[string]string{
		"vector":     `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"a\"b\\c\u00e9"},"value":[1760000000.123,"1"]},{"metric":{},"value":[1760000000,"-2.5e-3"]}]}}`,
		"empty":      `{"status":"success","data":{"resultType":"vector","result":[]}}`,
		"odd values": `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]},{"metric":{},"value":[1,"+Inf"]},{"metric":{},"value":[1,"-Inf"]}]}}`,
		"matrix":     `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1760000000.001,"1"],[1760000001.999,"2"]]}]}}`,
		"scalar":     `{"status":"success","data":{"resultType":"scalar","result":[1760000000.5,"1760000000.5"]}}`,
		"notes":      `{"status":"success","warnings":["w1","w2"],"infos":["i"],"data":{"resultType":"vector","result":[]},"isPartial":false}`,
		"spaces":     "{ \"status\" : \"success\" ,\n \"data\" : { \"resultType\" : \"vector\" , \"result\" : [ { \"metric\" : { \"a\" : \"b\" } , \"value\" : [ 1.5 , \"2\" ] } ] , \"stats\":{\"x\":[1,true,null,{}]} } }\n",
		"type last":  `{"data":{"result":[{"metric":{"a":"b"},"value":[1.5,"2"]}],"resultType":"vector"},"status":"success"}`,
	}
}

func TestDecodeAsTheClientLibrary(t *testing.T) {
	for name, body := range bodies() {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
			defer srv.Close()
			client, err := api.NewClient(api.Config{Address: srv.URL})
			if err != nil {
				t.Fatal(err)
			}
			want, warnings, infos, err := v1.NewAPI(client).Query(t.Context(), "x", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got.value, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("value (-library +ours):\n%s", d)
			}
			if d := cmp.Diff([]string(warnings), got.warnings); d != "" {
				t.Errorf("warnings:\n%s", d)
			}
			if d := cmp.Diff([]string(infos), got.infos); d != "" {
				t.Errorf("infos:\n%s", d)
			}
		})
	}
}

func TestDecodeWhatIsNoNumber(t *testing.T) {
	histogram := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"histogram":[1,{"count":"2","sum":"3","buckets":[[0,"1","2","2"]]}]}]}}`
	if r, err := decode([]byte(histogram)); err != nil || len(r.value.(model.Vector)) != 0 {
		t.Errorf("native histogram: %v, %v", r.value, err)
	}
	if r, err := decode([]byte(`{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`)); err != nil || r.value.Type() != model.ValString {
		t.Errorf("string: %v, %v", r.value, err)
	}
	r, err := decode([]byte(`{"status":"error","errorType":"execution","error":"many-to-many"}`))
	if err != nil || r.refused == nil || r.refused.Type != v1.ErrExec || r.refused.Msg != "many-to-many" {
		t.Errorf("refusal: %+v, %v", r, err)
	}
	for _, body := range []string{
		"", "{}", "null", "[]", "<html>", `{"status":"success"`, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":1}}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"x"]}]}}`, `{"status":"success","data":{"resultType":"tensor","result":[]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"value":["1","2"]}]}}`, `{"status":"succ\`, `{"status" "success"}`, `{"status":"success",}`,
	} {
		if r, err := decode([]byte(body)); err == nil {
			t.Errorf("%s: read as %+v", body, r)
		}
	}
}

func TestAnswered(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   v1.ErrorType
	}{
		{200, bodies()["empty"], ""},
		{422, `{"status":"error","errorType":"execution","error":"x"}`, v1.ErrExec},
		{400, `{"status":"error","errorType":"bad_data","error":"x"}`, v1.ErrBadData},
		{503, `{"status":"error","errorType":"timeout","error":"x"}`, v1.ErrTimeout},
		{200, `<html>login</html>`, v1.ErrBadResponse},
		{404, `not found`, v1.ErrClient},
		{502, `bad gateway`, v1.ErrServer},
		{302, bodies()["empty"], v1.ErrClient},
	} {
		_, err := answered(c.status, []byte(c.body))
		var e *v1.Error
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%d %s: %v", c.status, c.body, err)
		case c.want != "" && (!errors.As(err, &e) || e.Type != c.want):
			t.Errorf("%d %s: %v, want %s", c.status, c.body, err, c.want)
		}
	}
}

func TestClockSkew(t *testing.T) {
	for _, c := range []struct{ theirs, ours, want float64 }{
		{100.5, 100.25, 0.25},
		{100.5, 103, -2.5},
		{100, 100.9, 0}, // cut to the second
		{100, 102.5, -1.5},
		{100, 98.5, 1.5},
	} {
		if got := clockSkew(c.theirs, c.ours); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("theirs %v, ours %v: skew %v, want %v", c.theirs, c.ours, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range bodies() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r, err := decode([]byte(body)) // must neither panic nor hang
		if err != nil || !json.Valid([]byte(body)) || strings.Contains(body, `\u`) {
			return
		}
		if v, ok := r.value.(model.Vector); ok {
			for _, s := range v {
				if math.IsNaN(float64(s.Timestamp)) {
					t.Errorf("time %v", s.Timestamp)
				}
			}
		}
	})
}
