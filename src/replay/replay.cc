#include "replay/replay.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <condition_variable>
#include <mutex>

#include "agent/recording/recorder.h"
#include "base/byte_reader.h"
#include "base/varint.h"
#include "replay/recording_decode.h"

namespace flamewire::replay {
namespace {

using namespace agent;

class CollectingSink final : public BatchSink {
public:
    CollectingSink(const CaptureFile& capture, Replayed& into) : capture_(capture), into_(into) {}

    void use(ReplaySystem& system) { system_ = &system; }

    Result<bool> begin(const wire::RecordingId&) override { return true; }
    Result<bool> push(wire::Batch& batch, const wire::EventPeriods& periods) override {
        if (const auto result = system_->next_input(inputs::pushed)) {
            ByteReader in(as_bytes_view(*result));
            const std::uint64_t taken = read_varint(in);
            if (taken == 0) return false;
            if (taken == 2) return fail(ErrorCode::io, std::string(as_text(in.bytes(in.remaining()))));
        }
        into_.batches.push_back(std::move(batch));
        into_.periods.push_back(periods);
        return true;
    }
    [[nodiscard]] bool names_kernel_at_end() const override {
        return !capture_.results(Call::input, inputs::kernel_names_at_end).empty();
    }
    [[nodiscard]] Backlog backlog() const override {
        const auto result = system_->next_input(inputs::backlog);
        if (!result) return {};
        ByteReader in(as_bytes_view(*result));
        const auto batches = static_cast<std::uint32_t>(read_varint(in));
        return {batches, read_varint(in)};
    }

private:
    const CaptureFile& capture_;
    Replayed& into_;
    ReplaySystem* system_ = nullptr;
};

// Sends the recorded commands to the recorder at the start of their round.
class RoundDriver {
public:
    explicit RoundDriver(const CaptureFile& capture) : capture_(capture) {}

    // Rounds wait until this has been called.
    void attach(Recorder& recorder, ReplaySystem& system) {
        const std::lock_guard lock(mutex_);
        system_ = &system;
        recorder_ = &recorder;
        changed_.notify_all();
    }
    void begin_round(std::uint32_t round) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return recorder_ != nullptr; });
        lock.unlock();
        if (round > capture_.rounds()) {
            ended_early_ = true;
            return recorder_->request_stop("end of the capture", 0);
        }
        if (const auto text = system_->next_input(inputs::command))
            if (auto command = decode_command(*text)) recorder_->post(*std::move(command));
        if (system_->next_input(inputs::epoch)) recorder_->begin_epoch();
        if (const auto text = system_->next_input(inputs::stop)) {
            std::int32_t code = 0;
            const char* const rest = std::from_chars(text->data(), text->data() + text->size(), code).ptr;
            const auto skipped = std::min(static_cast<std::size_t>(rest - text->data()) + 1, text->size());
            recorder_->request_stop(std::string(text->substr(skipped)), code);
        }
    }
    void ended() {
        const std::lock_guard lock(mutex_);
        over_ = true;
        changed_.notify_all();
    }
    void wait_for_end() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return over_; });
    }
    // Call it after the recorder has stopped.
    [[nodiscard]] bool ended_early() const { return ended_early_; }

private:
    const CaptureFile& capture_;
    ReplaySystem* system_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    Recorder* recorder_ = nullptr;
    bool over_ = false;
    bool ended_early_ = false;
};

Result<std::string_view> first_input(const CaptureFile& capture, std::string_view name) {
    const std::vector<CallResult>& results = capture.results(Call::input, name);
    if (results.empty())
        return fail(ErrorCode::invalid, "the capture ends before the recording starts: it has no " + std::string(name));
    return results.front().bytes;
}

}  // namespace

Result<Replayed> replay(const CaptureFile& capture) {
    Replayed done;
    const std::string_view plan = TRY(first_input(capture, inputs::plan));
    const std::string_view capabilities = TRY(first_input(capture, inputs::capabilities));
    const std::string_view machine_text = TRY(first_input(capture, inputs::machine));
    done.plan = TRY(decode_plan(plan));
    done.plan.follows_name = !capture.results(Call::input, inputs::follows_name).empty();
    done.capabilities = TRY(decode_capabilities(capabilities));
    done.machine = TRY(decode_machine(machine_text));
    if (done.machine.little_endian != (std::endian::native == std::endian::little))
        return fail(ErrorCode::unsupported, "the capture is from a machine of the other byte order");
    constexpr std::uint32_t smallest_page = 4'096, largest_page = 65'536;
    if (!std::has_single_bit(done.machine.page_size) || done.machine.page_size < smallest_page ||
        done.machine.page_size > largest_page)
        return fail(ErrorCode::invalid, "damaged capture: impossible page size");

    RoundDriver driver(capture);
    ReplaySystem system(capture, done.machine.page_size, [&](std::uint32_t round) { driver.begin_round(round); });
    CollectingSink sink(capture, done);
    sink.use(system);
    const Kernel kernel = system.kernel();
    const Environment environment{&system, &kernel};
    auto recorder =
        Recorder::open(done.plan, done.capabilities, done.machine, sink, [&] { driver.ended(); }, environment);
    if (!recorder) {
        done.refused = std::move(recorder).error();
    } else {
        driver.attach(**recorder, system);
        driver.wait_for_end();
        (*recorder)->stop({}, 0);
        done.ended_early = driver.ended_early();
        done.accounting = (*recorder)->accounting();
        done.account_line = (*recorder)->account_line();
    }
    done.fidelity = system.fidelity();
    return done;
}

}  // namespace flamewire::replay
