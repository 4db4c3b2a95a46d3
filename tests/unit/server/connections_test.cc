#include "server/http/connections.h"

#include <asio/io_context.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <catch2/catch.hpp>

#include <deque>
#include <string>

#include "server/http/tcp_bytes.h"
#include "server/limits.h"

using namespace flamewire::server;
using asio::ip::tcp;
using Clock = Connections::Clock;

namespace {

tcp::endpoint at(const char* address, std::uint16_t port) { return {asio::ip::make_address(address), port}; }

// Connections of this machine, with both ends.
struct Scene {
    struct Pair {
        tcp::socket client, server;
        tcp::endpoint remote;
    };
    asio::io_context io;
    tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
    std::deque<Pair> pairs;
    Connections connections;

    Pair& open(Clock::time_point now, const char* from = "127.0.0.1") {
        Pair pair{tcp::socket(io), tcp::socket(io), {}};
        pair.client.open(tcp::v4());
        pair.client.bind(at(from, 0));
        pair.client.connect(acceptor.local_endpoint());
        acceptor.accept(pair.server);
        pair.remote = pair.server.remote_endpoint();
        REQUIRE(connections.admit(pair.remote, now));
        connections.opened(pair.remote, pair.server.native_handle());
        connections.ready(pair.remote, now);
        return pairs.emplace_back(std::move(pair));
    }
    void answer(const Pair& pair, Clock::time_point now) {
        connections.busy(pair.remote);
        connections.idle(pair.remote, now);
    }
    // Whether the server's end was shut down.
    static bool is_ended(Pair& pair) {
        pair.client.non_blocking(true);
        char byte = 0;
        asio::error_code error;
        (void)pair.client.read_some(asio::buffer(&byte, 1), error);
        return error == asio::error::eof;
    }
    static void send(Pair& pair, std::size_t bytes) {
        asio::write(pair.client, asio::buffer(std::string(bytes, 'x')));
        std::string taken(bytes, '\0');
        std::size_t got = 0;
        while (got < bytes) got += pair.server.read_some(asio::buffer(taken));
    }
};

}  // namespace

TEST_CASE("a host has a share of the connections, and an IPv6 host includes all of its addresses") {
    Connections connections;
    const std::uint64_t before = times_reached(Limit::http_connections_of_host);
    for (std::size_t i = 0; i < limits::http_connections_of_host; ++i) {
        CHECK(connections.admit(at("192.0.2.1", static_cast<std::uint16_t>(1000 + i))));
        const std::string other = "2001:db8:0:7::" + std::to_string(i + 1);
        CHECK(connections.admit(at(other.c_str(), 1000)));
    }
    CHECK_FALSE(connections.admit(at("192.0.2.1", 999)));
    CHECK_FALSE(connections.admit(at("::ffff:192.0.2.1", 999)));
    CHECK_FALSE(connections.admit(at("2001:db8:0:7:ffff::1", 999)));
    CHECK(times_reached(Limit::http_connections_of_host) == before + 3);
    CHECK(connections.admit(at("2001:db8:0:8::1", 999)));
    CHECK(connections.admit(at("192.0.2.2", 999)));
    connections.closed(at("192.0.2.1", 1000));
    CHECK(connections.admit(at("192.0.2.1", 999)));
}

TEST_CASE("if all connections are taken, one without a request is closed") {
    Scene scene;
    const Clock::time_point start = Clock::now();
    const auto later = [&](int seconds) { return start + std::chrono::seconds(seconds); };
    Scene::Pair& idle = scene.open(start);
    scene.answer(idle, later(3));
    Scene::Pair& silent = scene.open(later(2));
    Scene::Pair& newer = scene.open(later(4));
    Scene::Pair& longest = scene.open(later(1));
    scene.answer(longest, later(2));
    while (scene.pairs.size() < limits::http_connections) scene.connections.busy(scene.open(later(5)).remote);
    scene.open(later(6));
    CHECK(Scene::is_ended(silent));
    scene.connections.busy(scene.pairs.back().remote);
    CHECK_FALSE(Scene::is_ended(newer));
    scene.connections.busy(scene.open(later(7)).remote);
    CHECK(Scene::is_ended(newer));
    CHECK_FALSE(Scene::is_ended(longest));
    scene.connections.busy(scene.open(later(8)).remote);
    CHECK(Scene::is_ended(longest));
    CHECK_FALSE(Scene::is_ended(idle));
    scene.connections.busy(scene.open(later(9)).remote);
    CHECK(Scene::is_ended(idle));
    // All others are busy with an answer.
    CHECK_FALSE(scene.connections.admit(at("127.0.0.9", 9), later(10)));
}

TEST_CASE("the host with the most connections makes room first") {
    Scene scene;
    const Clock::time_point start = Clock::now();
    Scene::Pair& idle = scene.open(start, "127.0.0.2");
    scene.answer(idle, start);
    Scene::Pair& silent = scene.open(start, "127.0.0.2");
    while (scene.pairs.size() < limits::http_connections)
        scene.open(start + std::chrono::milliseconds(scene.pairs.size()), "127.0.0.3");
    for (int i = 0; i < 20; ++i) scene.open(start + std::chrono::seconds(2), i % 2 ? "127.0.0.3" : "127.0.0.4");
    CHECK_FALSE(Scene::is_ended(idle));
    CHECK_FALSE(Scene::is_ended(silent));
    for (std::size_t i = 2; i < 22; ++i) CHECK(Scene::is_ended(scene.pairs[i]));
    CHECK_FALSE(Scene::is_ended(scene.pairs[22]));
}

TEST_CASE("a slow request is closed, an idle connection is not") {
    Scene scene;
    const Clock::time_point start = Clock::now();
    const auto later = [&](std::chrono::milliseconds time) { return start + time; };
    const std::uint64_t before = times_reached(Limit::http_header_time);
    Scene::Pair& silent = scene.open(start);
    Scene::Pair& slow = scene.open(start);
    Scene::Pair& body = scene.open(start);
    Scene::Pair& idle = scene.open(start);
    scene.answer(idle, start);
    Scene::Pair& again = scene.open(start);
    scene.answer(again, start);
    Scene::Pair& busy = scene.open(start);
    scene.connections.busy(busy.remote);
    Scene::send(slow, 4096);
    Scene::send(body, limits::http_read_rate * 11);
    scene.connections.close_slow(later(limits::http_header_time - std::chrono::milliseconds(1)));
    for (Scene::Pair& pair : scene.pairs) CHECK_FALSE(Scene::is_ended(pair));
    scene.connections.close_slow(later(limits::http_header_time));
    CHECK(Scene::is_ended(silent));
    CHECK(Scene::is_ended(slow));
    CHECK_FALSE(Scene::is_ended(body));
    CHECK_FALSE(Scene::is_ended(idle));
    CHECK(times_reached(Limit::http_header_time) == before + 2);
    // The time limit of a later request starts with its first byte.
    const auto much_later = later(std::chrono::seconds(50));
    scene.connections.close_slow(much_later);
    Scene::send(again, 5);
    scene.connections.close_slow(much_later + limits::http_header_time - std::chrono::milliseconds(1));
    CHECK_FALSE(Scene::is_ended(again));
    scene.connections.close_slow(much_later + limits::http_header_time);
    CHECK(Scene::is_ended(again));
    CHECK_FALSE(Scene::is_ended(idle));
    CHECK_FALSE(Scene::is_ended(busy));
}

TEST_CASE("an answer that the client does not read is closed, one that it reads slowly is not") {
    Scene scene;
    const Clock::time_point start = Clock::now();
    const std::uint64_t before = times_reached(Limit::http_write_rate);
    Scene::Pair& not_reading = scene.open(start);
    Scene::Pair& slow = scene.open(start);
    Scene::Pair& making = scene.open(start);
    Scene::Pair& done = scene.open(start);
    for (const Scene::Pair& pair : scene.pairs) scene.connections.busy(pair.remote);
    for (Scene::Pair* pair : {&not_reading, &slow, &done}) {
        pair->server.non_blocking(true);
        scene.connections.sending(pair->remote, start);
    }
    scene.connections.idle(done.remote, start);
    const std::string much(std::size_t{1} << 20, 'x');
    // Until both buffers are full.
    asio::error_code full;
    while (!full) (void)not_reading.server.write_some(asio::buffer(much), full);
    scene.connections.sending(not_reading.remote, start);
    std::uint64_t slow_taken = tcp_bytes_acknowledged(slow.server.native_handle());
    const auto take = [&](std::size_t bytes) {
        std::string taken(bytes, '\0');
        asio::write(slow.server, asio::buffer(much, bytes));
        asio::read(slow.client, asio::buffer(taken));
        while (tcp_bytes_acknowledged(slow.server.native_handle()) < slow_taken + bytes) {
        }
        slow_taken += bytes;
    };
    const std::size_t enough = limits::http_write_rate * limits::http_write_time.count();
    take(enough);
    scene.connections.close_slow(start + limits::http_write_time - std::chrono::milliseconds(1));
    CHECK(times_reached(Limit::http_write_rate) == before);
    scene.connections.close_slow(start + limits::http_write_time);
    CHECK(times_reached(Limit::http_write_rate) == before + 1);
    // The end of the stream comes after all earlier bytes.
    std::string rest(much.size(), '\0');
    asio::error_code error;
    while (!error) (void)not_reading.client.read_some(asio::buffer(rest), error);
    CHECK(error == asio::error::eof);
    // The next time limit starts here.
    take(enough);
    scene.connections.close_slow(start + 2 * limits::http_write_time);
    for (Scene::Pair* pair : {&slow, &making, &done}) CHECK_FALSE(Scene::is_ended(*pair));
    scene.connections.close_slow(start + 3 * limits::http_write_time);
    CHECK(Scene::is_ended(slow));
    CHECK_FALSE(Scene::is_ended(making));
    CHECK(times_reached(Limit::http_write_rate) == before + 2);
}

TEST_CASE("a connection that the client has closed is not open") {
    Scene scene;
    Scene::Pair& pair = scene.open(Clock::now());
    scene.connections.busy(pair.remote);
    CHECK(scene.connections.is_open(pair.remote));
    pair.client.close();
    while (scene.connections.is_open(pair.remote)) {
    }
    CHECK_FALSE(scene.connections.is_open(at("127.0.0.9", 9)));
}
