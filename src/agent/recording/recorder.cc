#include "agent/recording/recorder.h"

namespace flamewire::agent {
namespace {

// Files stay open, because their unwind tables are read while samples arrive.
ProcessTableOptions process_options() {
    ProcessTableOptions options;
    options.keep_files = true;
    return options;
}

}  // namespace

Recorder::Recorder(RecordingPlan plan, const Machine& machine, BatchSink& sink, std::function<void()> on_end,
                   const Environment& environment)
    : on_end_(std::move(on_end)),
      system_(environment.system),
      processes_(process_options()),
      sampler_(std::make_unique<Sampler>(RecordingSetup{std::move(plan), environment, machine}, sink, processes_,
                                         mailbox_, snapshot_)) {}

Result<std::unique_ptr<Recorder>> Recorder::open(RecordingPlan plan, const Capabilities& capabilities,
                                                 const Machine& machine, BatchSink& sink, std::function<void()> on_end,
                                                 const Environment& environment) {
    std::unique_ptr<Recorder> recorder(new Recorder(std::move(plan), machine, sink, std::move(on_end), environment));
    (void)TRY(recorder->mailbox_.open());
    // The thread that opens an event set owns it.
    recorder->thread_ = std::thread([self = recorder.get(), &capabilities] { self->run(capabilities); });
    (void)TRY(recorder->mailbox_.wait_until_opened());
    return recorder;
}

Recorder::~Recorder() { stop("agent ends", 0); }

void Recorder::run(const Capabilities& capabilities) {
    const UseSystem use(system_);
    Result<bool> opened = sampler_->open(capabilities);
    const bool works = opened.has_value();
    if (!works) sampler_.reset();
    mailbox_.opened(std::move(opened));
    if (!works) return;
    sampler_->run();
    sink_error_ = sampler_->sink_error();
    // Free rings and tables now, on the thread that owns them, so that an idle agent is small.
    sampler_.reset();
    mailbox_.finish();
    if (on_end_) on_end_();
}

Result<UniqueFd> Recorder::open_module(const FileIdentity& identity) {
    // After the end, the sampler thread no longer uses processes_.
    if (ended()) return processes_.duplicate_file(identity);
    Result<UniqueFd> file = fail(ErrorCode::closed, "the recording is ending");
    (void)execute(OpenModule{&identity, &file});
    return file;
}

void Recorder::stop(std::string reason, std::int32_t exit_code) {
    if (!thread_.joinable()) return;
    request_stop(std::move(reason), exit_code);
    thread_.join();
}

std::optional<Ended> Recorder::ended() const {
    std::optional<std::string> reason = mailbox_.end_reason();
    if (!reason) return std::nullopt;
    return Ended{*std::move(reason), sink_error_};
}

}  // namespace flamewire::agent
