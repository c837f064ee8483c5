// SPDX-License-Identifier: Apache-2.0

// A grpc-go client against the server at os.Args[1]. Messages are written with protowire, so no code
// is generated. Prints one line per check and exits 1 at the first failure.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

const service = "/inference.GRPCInferenceService/"

// rawCodec passes bytes through.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (rawCodec) Name() string                       { return "proto" }

func check(name string, ok bool, detail any) {
	if !ok {
		fmt.Println("FAILED", name, detail)
		os.Exit(1)
	}
	fmt.Println("ok", name)
}

func text(out []byte, field protowire.Number, value []byte) []byte {
	out = protowire.AppendTag(out, field, protowire.BytesType)
	return protowire.AppendBytes(out, value)
}

func request(model, id string, data []byte) *[]byte {
	var input []byte
	input = text(input, 1, []byte("INPUT0"))
	input = text(input, 2, []byte("FP32"))
	var shape []byte
	if model == "id_FP32" {
		shape = protowire.AppendVarint(shape, 1)
	}
	shape = protowire.AppendVarint(shape, uint64(len(data)/4))
	input = text(input, 3, shape)
	var message []byte
	message = text(message, 1, []byte(model))
	message = text(message, 3, []byte(id))
	message = text(message, 5, input)
	message = text(message, 7, data)
	return &message
}

// field returns the last bytes field of that number.
func field(message []byte, wanted protowire.Number) []byte {
	var found []byte
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if number == wanted && kind == protowire.BytesType {
			found, _ = protowire.ConsumeBytes(message)
		}
		message = message[size:]
	}
	return found
}

func main() {
	connection, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}),
			grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	check("connect", err == nil, err)
	defer connection.Close()
	call := func(path string, in *[]byte, timeout time.Duration, options ...grpc.CallOption) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		var out []byte
		err := connection.Invoke(ctx, path, in, &out, options...)
		return out, err
	}

	data := bytes.Repeat([]byte{1, 2, 3, 4}, 16)
	reply, err := call(service+"ModelInfer", request("id_FP32", "go", data), 20*time.Second)
	check("unary", err == nil && bytes.Equal(field(reply, 6), data) && string(field(reply, 3)) == "go", err)

	reply, err = call(service+"ModelInfer", request("id_FP32", "", data), 20*time.Second, grpc.UseCompressor(gzip.Name))
	check("gzip", err == nil && bytes.Equal(field(reply, 6), data), err)

	large := bytes.Repeat([]byte{5, 6, 7, 8}, 16<<20)
	reply, err = call(service+"ModelInfer", request("id_FP32", "", large), 120*time.Second)
	check("64 MiB", err == nil && bytes.Equal(field(reply, 6), large), err)

	_, err = call(service+"ModelInfer", request("nobody", "", data), 20*time.Second)
	check("unknown model", status.Code(err) == codes.NotFound, err)
	empty := []byte{}
	_, err = call(service+"Nope", &empty, 20*time.Second)
	check("unknown method", status.Code(err) == codes.Unimplemented, err)

	// While an earlier request is still executed, a deadline that cannot be met is refused with
	// UNAVAILABLE at once: the check below needs an idle instance.
	_, err = call(service+"ModelInfer", request("id_slow", "", data), 20*time.Second)
	check("slow model", err == nil, err)
	_, err = call(service+"ModelInfer", request("id_slow", "", data), 50*time.Millisecond)
	check("deadline", status.Code(err) == codes.DeadlineExceeded, err)

	ctx, cancel := context.WithCancel(context.Background())
	go func() { time.Sleep(20 * time.Millisecond); cancel() }()
	var out []byte
	err = connection.Invoke(ctx, service+"ModelInfer", request("id_slow", "", data), &out)
	check("cancel", status.Code(err) == codes.Canceled, err)

	stream, err := connection.NewStream(context.Background(),
		&grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, service+"ModelStreamInfer")
	check("stream", err == nil, err)
	const count = 200
	go func() {
		for i := 0; i < count; i++ {
			if stream.SendMsg(request("id_FP32", fmt.Sprint(i), data)) != nil {
				return
			}
		}
		stream.CloseSend()
	}()
	for i := 0; i < count; i++ {
		err = stream.RecvMsg(&out)
		response := field(out, 2)
		if err != nil || string(field(response, 3)) != fmt.Sprint(i) || !bytes.Equal(field(response, 6), data) {
			check("stream response", false, err)
		}
	}
	check("stream responses in order", true, nil)
	err = stream.RecvMsg(&out)
	check("stream end", err == io.EOF, err)
}
