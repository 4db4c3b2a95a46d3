// The link with a server that cuts connections, restarts, stays silent or sends nonsense. The sockets are real, on
// loopback. The test thread is the server.
#include "agent/link/link.h"

#include <catch2/catch.hpp>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "fake_server.h"
#include "model.h"

using namespace flamewire;
using namespace flamewire::agent;

namespace {

wire::RecordingId source_id() {
    wire::RecordingId id{};
    id[3] = 9;
    return id;
}

Link::Callbacks quiet() {
    return {.hello =
                [] {
                    wire::Hello hello;
                    hello.agent_id = "test";
                    return hello;
                },
            .command = [](wire::Command) {},
            .new_epoch_wanted = [] {}};
}

std::unique_ptr<Link> start(const LinkOptions& options, Link::Callbacks callbacks) {
    auto link = Link::start(options, std::move(callbacks));
    if (!link) FAIL(link.error().message);
    return std::move(*link);
}

LinkOptions dialling(std::uint16_t port) {
    LinkOptions options;
    options.host = "127.0.0.1";
    options.port = port;
    options.retry_ms = 2;
    options.insecure = true;  // so that the test can read the bytes
    return options;
}

template <class Condition>
bool eventually(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

}  // namespace

TEST_CASE("a hundred cuts and restarts: every batch arrives once, every sample is counted") {
    for (const std::size_t spool_bytes : {std::size_t{8} << 20, std::size_t{6000}}) {
        CAPTURE(spool_bytes);
        Listener listener;
        const std::uint16_t port = listener.port();
        LinkOptions options = dialling(port);
        options.spool_bytes = spool_bytes;
        std::unique_ptr<Link> link = start(options, quiet());
        Source source(spool_bytes);
        std::atomic<bool> done = false;
        std::thread producer([&] {
            link->begin_recording(source_id());
            for (int i = 0; i < 700; ++i) {
                if (i % 150 == 149) source.begin_epoch();
                Batch batch = source.next();
                while (!link->push(batch, periods)) std::this_thread::yield();
                if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            done = true;
        });

        std::mt19937_64 random(spool_bytes + 1);
        ModelServer server;  // the server's disk, which outlives every connection
        std::uint64_t hellos = 0;
        for (int round = 0; round < 100; ++round) {
            if (random() % 10 == 0) {  // the server restarts
                listener.close();
                std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
                listener = Listener(port);
            }
            Peer peer = listener.accept();
            const std::uint64_t how = random() % 10;
            if (how == 0) {  // closes before it reads anything
                peer.cut(true);
                continue;
            }
            const wire::Hello hello = peer.hello();
            ++hellos;
            REQUIRE(hello.agent_id == "test");
            if (hello.recording) {
                REQUIRE(hello.recording->id == source_id());
                REQUIRE(hello.recording->first_unacknowledged <= server.last_seq + 1);
                REQUIRE(hello.recording->last_seq >= server.last_seq);
            }
            if (how == 1) {  // closes before it answers
                peer.cut(random() % 2 == 0);
                continue;
            }
            peer.acknowledge(hello.recording ? std::optional(hello.recording->id) : std::nullopt, server.last_seq);
            for (std::uint64_t frames = random() % 40; frames-- > 0;) {
                const auto frame = peer.frame(20, 1 + random() % 900);
                if (!frame) break;
                server.receive(wire::encode_frame(frame->flag, frame->payload));
                if (random() % 4 == 0) peer.acknowledge(source_id(), server.last_seq);
            }
            peer.cut(random() % 2 == 0);
        }
        Peer peer = listener.accept();
        const wire::Hello hello = peer.hello();
        peer.acknowledge(hello.recording->id, server.last_seq);
        while (!done || server.last_seq < 700) {
            const auto frame = peer.frame();
            REQUIRE(frame);
            server.receive(wire::encode_frame(frame->flag, frame->payload));
            peer.acknowledge(source_id(), server.last_seq);
        }
        producer.join();
        CHECK(link->flush(5000));
        CHECK(hellos > 50);
        CHECK(server.shown + server.lost == source.samples);
        if (spool_bytes > 1'000'000) CHECK(server.lost == source.own_losses);
        CHECK(eventually([&] { return link->status().acknowledged_seq == 700; }));
        CHECK(link->status().spool_bytes == 0);
        link->stop();
    }
}

TEST_CASE("commands arrive and replies return; nonsense ends the connection, and a new one follows") {
    Listener listener;
    std::unique_ptr<Link> link;
    std::atomic<int> commands = 0;
    Link::Callbacks callbacks = quiet();
    callbacks.command = [&](const wire::Command& command) {
        ++commands;
        link->reply(R"({"id":")" + command.id + R"(","ok":true})");
    };
    link = start(dialling(listener.port()), std::move(callbacks));
    Peer peer = listener.accept();
    CHECK_FALSE(peer.hello().recording);
    peer.acknowledge(std::nullopt, 0);
    peer.send(static_cast<wire::Flag>(200), "from the future");
    peer.send(wire::Flag::command, R"({"id":"a1","cmd":"ping"})");
    const auto reply = peer.frame();
    REQUIRE(reply);
    CHECK(reply->flag == wire::Flag::reply);
    CHECK(reply->payload == R"({"id":"a1","ok":true})");
    CHECK(eventually([&] { return link->status().connected; }));

    const std::string nonsense[] = {
        wire::encode_frame(wire::Flag::command, "{"),
        wire::encode_frame(wire::Flag::command, R"({"cmd":"ping"})"),
        wire::encode_frame(wire::Flag::acknowledgement, "[]"),
        wire::encode_frame(wire::Flag::acknowledgement, R"({"recording":"zz","seq":1})"),
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        std::string("\x00\x10\x00\x01\x02", 5),  // 1 MiB + 1 byte announced
    };
    for (const std::string& bytes : nonsense) {
        CAPTURE(bytes);
        peer.send_raw(bytes);
        CHECK_FALSE(peer.frame());
        CHECK(peer.closed());
        peer = listener.accept();
        peer.hello();
        peer.acknowledge(std::nullopt, 0);
    }
    CHECK(commands == 1);
    peer.send(wire::Flag::command, R"({"id":"a2","cmd":"ping"})");
    CHECK(peer.frame());
}

TEST_CASE("a server without the start of the recording requests a new epoch") {
    Listener listener;
    std::atomic<int> wanted = 0;
    Link::Callbacks callbacks = quiet();
    callbacks.new_epoch_wanted = [&] { ++wanted; };
    std::unique_ptr<Link> link = start(dialling(listener.port()), std::move(callbacks));
    Source source(3);
    link->begin_recording(source_id());
    for (int i = 0; i < 3; ++i) {
        Batch batch = source.next();
        REQUIRE(link->push(batch, periods));
    }
    ModelServer first, second;
    {
        Peer peer = listener.accept();
        peer.hello();
        peer.acknowledge(std::nullopt, 0);
        while (first.last_seq < 3)
            first.receive([&] {
                const auto f = peer.frame();
                REQUIRE(f);
                return wire::encode_frame(f->flag, f->payload);
            }());
        peer.acknowledge(source_id(), 3);
        CHECK(link->flush(5000));
        CHECK(wanted == 0);
    }
    Peer peer = listener.accept();
    const wire::Hello hello = peer.hello();
    REQUIRE(hello.recording);
    CHECK(hello.recording->first_unacknowledged == 4);
    CHECK(hello.recording->last_seq == 3);
    peer.acknowledge(hello.recording->id, 0);
    CHECK(eventually([&] { return wanted == 1; }));
    source.begin_epoch();
    Batch batch = source.next();
    REQUIRE(link->push(batch, periods));
    const auto frame = peer.frame();
    REQUIRE(frame);
    second.receive(wire::encode_frame(frame->flag, frame->payload));
    CHECK(second.last_seq == 4);
    CHECK(second.shown + second.lost == source.samples);
}

TEST_CASE("recordings follow each other on one connection") {
    Listener listener;
    std::unique_ptr<Link> link = start(dialling(listener.port()), quiet());
    const auto push_one = [&](std::uint8_t recording, std::uint64_t seq) {
        Batch batch;
        batch.recording_id[0] = recording;
        batch.seq = seq;
        REQUIRE(link->push(batch, {}));
    };
    const auto expect = [&](Peer& peer, std::uint8_t recording, std::uint64_t seq) {
        const auto frame = peer.frame();
        REQUIRE(frame);
        const auto bytes = wire::batch_bytes(*frame);
        REQUIRE(bytes);
        const auto header = wire::peek_header(as_bytes_view(*bytes));
        REQUIRE(header);
        CHECK(header->recording_id[0] == recording);
        CHECK(header->seq == seq);
        return header->recording_id;
    };
    // The first connection fails, so that the next hello comes after these batches.
    Peer early = listener.accept();
    early.hello();
    push_one(1, 1);
    push_one(1, 2);
    push_one(2, 1);
    CHECK(eventually([&] { return link->status().queue_batches == 0 && link->status().spool_bytes > 0; }));
    early.cut(true);
    Peer peer = listener.accept();
    const wire::Hello hello = peer.hello();
    REQUIRE(hello.recording);
    CHECK(hello.recording->id[0] == 1);
    CHECK(hello.recording->last_seq == 2);
    peer.acknowledge(hello.recording->id, 1);
    const wire::RecordingId first = expect(peer, 1, 2);
    CHECK_FALSE(peer.frame(50));  // the second recording waits for the end of the first
    peer.acknowledge(first, 2);
    const wire::RecordingId second = expect(peer, 2, 1);
    CHECK_FALSE(link->flush(10));
    peer.acknowledge(second, 1);
    CHECK(link->flush(5000));
}

TEST_CASE("listening: one server at a time, namely the newest that answers") {
    LinkOptions options;
    options.listen = true;
    options.host = "127.0.0.1";
    options.port = 0;
    options.insecure = true;
    std::unique_ptr<Link> link = start(options, quiet());
    const std::uint16_t port = link->status().listen_port;
    REQUIRE(port != 0);

    LinkOptions again = options;
    again.port = port;
    const auto second_link = Link::start(again, quiet());
    REQUIRE_FALSE(second_link);
    CHECK(second_link.error().code == ErrorCode::busy);
    CHECK(second_link.error().message.find(std::to_string(port)) != std::string::npos);

    Peer first = dial(port);
    first.hello();
    first.acknowledge(std::nullopt, 0);
    CHECK(eventually([&] { return link->status().connected; }));
    Peer silent = dial(port);  // stays silent and changes nothing
    silent.hello();
    first.send(wire::Flag::command, R"({"id":"x","cmd":"ping"})");
    Peer second = dial(port);
    second.hello();
    second.acknowledge(std::nullopt, 0);
    CHECK_FALSE(first.frame());
    CHECK(first.closed());

    Batch batch;
    batch.recording_id[0] = 1;
    batch.seq = 1;
    REQUIRE(link->push(batch, {}));
    const auto frame = second.frame();
    REQUIRE(frame);
    CHECK(frame->flag == wire::Flag::batch_zstd);
}

TEST_CASE("without a server: push continues, flush times out, stop does not wait") {
    std::uint16_t closed_port = 0;
    {
        const Listener listener;
        closed_port = listener.port();
    }
    std::unique_ptr<Link> link = start(dialling(closed_port), quiet());
    Source source(4);
    for (int i = 0; i < 20; ++i) {
        Batch batch = source.next();
        while (!link->push(batch, periods)) std::this_thread::yield();
    }
    CHECK_FALSE(link->flush(30));
    CHECK(eventually([&] { return link->status().spool_bytes > 0 && link->status().queue_batches == 0; }));
    CHECK_FALSE(link->status().connected);
    link->stop();
    link->stop();
    CHECK_FALSE(link->flush(10'000'000));

    // A server that accepts and stays silent, and a name without an address.
    const Listener listener;
    start(dialling(listener.port()), quiet())->stop();
    LinkOptions nowhere = dialling(1);
    nowhere.host = "no-such-host.invalid";
    start(nowhere, quiet())->stop();
    nowhere.host = "localhost";
    start(nowhere, quiet())->stop();
}

TEST_CASE("starting a link does not change the caller's signal mask") {
    const auto blocked = [] {
        sigset_t set;
        REQUIRE(::pthread_sigmask(SIG_BLOCK, nullptr, &set) == 0);
        std::vector<int> numbers;
        for (int number = 1; number < SIGRTMIN; ++number)
            if (::sigismember(&set, number) == 1) numbers.push_back(number);
        return numbers;
    };
    // Set explicitly, because the mask of an earlier test could hide a change.
    sigset_t usr2, original;
    ::sigemptyset(&usr2);
    ::sigaddset(&usr2, SIGUSR2);
    REQUIRE(::pthread_sigmask(SIG_SETMASK, &usr2, &original) == 0);
    {
        const Listener listener;
        const std::unique_ptr<Link> link = start(dialling(listener.port()), quiet());
        CHECK(blocked() == std::vector{SIGUSR2});
        link->stop();
    }
    ::pthread_sigmask(SIG_SETMASK, &original, nullptr);
}

TEST_CASE("a full queue refuses a batch and leaves it unchanged") {
    std::atomic<bool> go_on = false;
    Link::Callbacks callbacks = quiet();
    callbacks.hello = [&] {
        while (!go_on) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return wire::Hello{};
    };
    Listener listener;
    std::unique_ptr<Link> link = start(dialling(listener.port()), std::move(callbacks));
    Peer peer = listener.accept();
    Source source(8);
    std::optional<Batch> refused;
    for (int i = 0; i < 200 && !refused; ++i) {
        Batch batch = source.next();
        const Batch copy = batch;
        if (!link->push(batch, periods)) {
            CHECK(batch == copy);
            refused = batch;
        }
    }
    CHECK(refused);
    CHECK(link->status().queue_batches > 0);
    go_on = true;
    CHECK(eventually([&] { return link->push(*refused, periods); }));
    peer.hello();
    peer.acknowledge(std::nullopt, 0);
    ModelServer server;
    while (server.last_seq < source.seq) {
        const auto frame = peer.frame();
        REQUIRE(frame);
        server.receive(wire::encode_frame(frame->flag, frame->payload));
    }
    CHECK(server.shown + server.lost == source.samples);
}

TEST_CASE("a part of a module goes to the server that answered, after the batches, one at a time") {
    Listener listener;
    std::unique_ptr<Link> link = start(dialling(listener.port()), quiet());
    CHECK(link->send_module_chunk("into nowhere"));
    Peer peer = listener.accept();
    peer.hello();
    peer.acknowledge(std::nullopt, 0);
    // A part that was sent without a connection is dropped, which makes room.
    const std::string part(std::size_t{256} << 10, 'x');
    while (!link->status().connected) std::this_thread::yield();
    while (!link->send_module_chunk(part)) std::this_thread::yield();
    const auto frame = peer.frame();
    REQUIRE(frame);
    CHECK(frame->flag == wire::Flag::module_chunk);
    CHECK(frame->payload == part);
    // A server that does not read: batches precede the waiting part, and a second part is refused.
    Source source(1);
    link->begin_recording(source_id());
    while (link->send_module_chunk(part)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Batch batch = source.next();
    while (!link->push(batch, periods)) std::this_thread::yield();
    std::size_t parts = 0;
    bool batch_came = false;
    while (const auto next = peer.frame(500, 4096)) {
        parts += next->flag == wire::Flag::module_chunk;
        batch_came = batch_came || next->flag == wire::Flag::batch || next->flag == wire::Flag::batch_zstd;
    }
    CHECK(batch_came);
    CHECK(parts > 0);
    while (!link->send_module_chunk("again")) std::this_thread::yield();
    const auto again = peer.frame();
    REQUIRE(again);
    CHECK(again->payload == "again");
    link->stop();
}

TEST_CASE("health goes to the server that answered, and is dropped and counted without one") {
    Listener listener;
    std::unique_ptr<Link> link = start(dialling(listener.port()), quiet());
    Peer peer = listener.accept();
    peer.hello();
    link->send_metrics("{\"early\":1}");
    REQUIRE(eventually([&] { return link->status().dropped_metrics == 1; }));
    peer.acknowledge(std::nullopt, 0);
    REQUIRE(eventually([&] { return link->status().connected; }));
    link->send_metrics("{\"type\":\"system\"}");
    const auto frame = peer.frame();
    REQUIRE(frame);
    CHECK(frame->flag == wire::Flag::metrics);
    CHECK(frame->payload == "{\"type\":\"system\"}");
    CHECK(link->status().dropped_metrics == 1);

    // A server that does not read: excess frames are dropped, and the link's memory stays small.
    const std::string large(60'000, 'x');
    REQUIRE(eventually([&] {
        for (int i = 0; i < 20; ++i) link->send_metrics(large);
        return link->status().dropped_metrics > 100;
    }));
    CHECK(link->status().connected);

    peer.cut(true);
    REQUIRE(eventually([&] { return !link->status().connected; }));
    const std::uint64_t dropped = link->status().dropped_metrics;
    link->send_metrics("{}");
    REQUIRE(eventually([&] { return link->status().dropped_metrics > dropped; }));
}
