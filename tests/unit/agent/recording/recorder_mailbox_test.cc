#include "agent/recording/recorder_mailbox.h"

#include <catch2/catch.hpp>
#include <poll.h>

#include <thread>
#include <variant>

using namespace flamewire;
using namespace flamewire::agent;

namespace {

bool wakes(const RecorderMailbox& mailbox, int timeout_ms) {
    pollfd wake{mailbox.wake_fd(), POLLIN, 0};
    return ::poll(&wake, 1, timeout_ms) == 1;
}

constexpr int long_ms = 10'000;

}  // namespace

TEST_CASE("a command wakes the sampler thread and returns its result") {
    RecorderMailbox mailbox;
    REQUIRE(mailbox.open().has_value());
    CHECK_FALSE(wakes(mailbox, 0));
    std::optional<Result<bool>> result;
    std::thread other([&] { result = mailbox.execute(Pause{}); });
    CHECK(wakes(mailbox, long_ms));
    mailbox.clear_wake();
    CHECK_FALSE(wakes(mailbox, 0));
    const std::optional<RecorderCommand> command = mailbox.take_command();
    CHECK((command && std::holds_alternative<Pause>(*command)));
    mailbox.answer(fail(ErrorCode::busy, "not now"));
    other.join();
    REQUIRE((result && !*result));
    CHECK(result->error().message == "not now");
    CHECK_FALSE(mailbox.take_command().has_value());
}

TEST_CASE("a posted command replaces the previous one, and nobody waits for it") {
    RecorderMailbox mailbox;
    REQUIRE(mailbox.open().has_value());
    mailbox.post(Pause{});
    mailbox.post(Resume{});
    const std::optional<RecorderCommand> command = mailbox.take_command();
    CHECK((command && std::holds_alternative<Resume>(*command)));
    CHECK_FALSE(mailbox.take_command().has_value());
}

TEST_CASE("the first reason ends a recording") {
    RecorderMailbox mailbox;
    REQUIRE(mailbox.open().has_value());
    CHECK_FALSE(mailbox.must_stop());
    SECTION("a request of another thread") {
        mailbox.request_stop("stopped", 5);
        CHECK(wakes(mailbox, 0));
        mailbox.end("target exited");
        mailbox.request_stop("stopped again", 6);
        CHECK(mailbox.end_of_recording() == wire::End{"stopped", 5});
    }
    SECTION("the target exits") {
        mailbox.end("target exited");
        mailbox.request_stop("stopped", 5);
        CHECK(mailbox.end_of_recording() == wire::End{"target exited", 0});
    }
    CHECK(mailbox.must_stop());
    CHECK_FALSE(mailbox.end_reason().has_value());
    CHECK_FALSE(mailbox.execute(Pause{}).has_value());
    mailbox.finish();
    CHECK(mailbox.end_reason() == mailbox.end_of_recording().reason);
}

TEST_CASE("a command that the end overtakes is closed") {
    RecorderMailbox mailbox;
    REQUIRE(mailbox.open().has_value());
    std::optional<Result<bool>> result;
    std::thread other([&] { result = mailbox.execute(Pause{}); });
    CHECK(wakes(mailbox, long_ms));
    mailbox.end("target exited");
    mailbox.finish();
    other.join();
    REQUIRE((result && !*result));
    CHECK(result->error().code == ErrorCode::closed);
}

TEST_CASE("a requested epoch begins once") {
    RecorderMailbox mailbox;
    CHECK_FALSE(mailbox.take_epoch());
    mailbox.request_epoch();
    mailbox.request_epoch();
    CHECK(mailbox.take_epoch());
    CHECK_FALSE(mailbox.take_epoch());
}
