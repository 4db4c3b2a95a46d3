#include "server/session/imports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/clock.h"
#include "base/fd.h"
#include "profile/formats/collapsed_import.h"
#include "wire/session_file.h"

namespace flamewire::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = std::size_t{1} << 20;
constexpr std::size_t imports_kept = 50;
// Rows of files without times stand here, in ns; not at 0, which means "not known".
constexpr std::uint64_t moment_ns = 1'000'000'000;

// A regular file, read from its start.
class Input {
public:
    static Result<Input> open(const std::string& path) {
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd) return fail_errno("cannot open " + path, errno);
        struct stat status{};
        if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot read " + path, errno);
        if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid, path + " is not a regular file");
        return Input(path, std::move(fd), static_cast<std::uint64_t>(status.st_size));
    }
    // The next bytes; "" at the end.
    Result<std::string_view> next() {
        const ssize_t got = ::read(fd_.get(), block_.data(), block_.size());
        if (got < 0) return fail_errno("cannot read " + path_, errno);
        read_ += static_cast<std::uint64_t>(got);
        return std::string_view(block_).substr(0, static_cast<std::size_t>(got));
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] std::uint64_t position() const { return read_; }

private:
    Input(std::string path, UniqueFd fd, std::uint64_t size)
        : path_(std::move(path)), fd_(std::move(fd)), size_(size), block_(block_bytes, '\0') {}
    std::string path_;
    UniqueFd fd_;
    std::uint64_t size_, read_ = 0;
    std::string block_;
};

wire::RecordingId random_recording() {
    wire::RecordingId id{};
    // Never short for so few bytes.
    (void)!::getrandom(id.data(), id.size(), 0);
    return id;
}

std::string last_part(const std::string& name) {
    std::string last = fs::path(name).filename().string();
    return last.empty() ? "import" : last;
}

Result<bool> import_collapsed(Input& input, std::string_view beginning, profile::RecordingBuilder& builder,
                              const std::function<void()>& progress) {
    profile::CollapsedImport import(builder, moment_ns / wire::default_bucket_ns);
    for (std::string_view block = beginning; !block.empty(); block = TRY(input.next())) {
        TRY(import.feed(block));
        progress();
    }
    return import.finish();
}

}  // namespace

std::string Imports::begin(std::string path, std::string name, std::function<void(const Import&)> finished) {
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = next_++;
        imports_[number].id = std::to_string(number);
        imports_[number].name = last_part(name);
        while (imports_.size() > imports_kept) imports_.erase(imports_.begin());
    }
    slow_.post([this, number, path = std::move(path), name = last_part(name), finished = std::move(finished)] {
        run(number, path, name, finished);
        changed_();
    });
    return std::to_string(number);
}

void Imports::run(std::uint64_t number, const std::string& path, const std::string& name,
                  const std::function<void(const Import&)>& finished) {
    const Result<std::string> session = import_file(number, path, name);
    Import import;
    {
        const std::lock_guard lock(mutex_);
        import = imports_[number];  // a new one when so many came after it that it was let go
    }
    import.id = std::to_string(number);
    import.name = name;
    import.state = session ? State::done : State::failed;
    if (session)
        import.session = *session;
    else
        import.problem = session.error().message;
    // Who sees that it ended finds nothing of it left to do.
    finished(import);
    const std::lock_guard lock(mutex_);
    imports_[number] = std::move(import);
}

Result<std::string> Imports::import_file(std::uint64_t number, const std::string& path, const std::string& name) {
    Input input = TRY(Input::open(path));
    progress(number, 0, input.size());
    const std::string_view beginning = TRY(input.next());
    if (beginning.empty()) return fail(ErrorCode::invalid, name + " is empty");
    if (beginning.starts_with(wire::session_magic)) return catalog_.adopt(path, name);
    if (!profile::CollapsedImport::recognises(beginning))
        return fail(ErrorCode::invalid,
                    fmt::format("{} is of no format that can be imported: sessions of flamewire-agent --output and "
                                "folded stacks (\"outer;inner count\") can",
                                name));

    const wire::RecordingId recording = random_recording();
    const std::shared_ptr<Session> session = TRY(catalog_.create(recording, name));
    session->detach_agent();
    wire::EventPeriods periods;
    wire::Recording about;
    about.target = name;
    about.start_ns = moment_ns;
    profile::RecordingBuilder builder(recording, std::move(about), realtime_ns(),
                                      [&](wire::Batch batch) -> Result<bool> {
                                          wire::learn_periods(batch, periods);
                                          const wire::Frame frame = wire::batch_frame(wire::encode(batch, periods));
                                          TRY(session->take(frame.flag, frame.payload, realtime_ns()));
                                          return true;
                                      });
    Result<bool> done =
        import_collapsed(input, beginning, builder, [&] { progress(number, input.position(), input.size()); });
    if (done) done = builder.finish("imported");
    if (done)
        if (auto synced = session->sync(); !synced) done = std::unexpected(synced.error());
    if (!done) {
        (void)catalog_.remove(session->id());
        return std::unexpected(done.error());
    }
    session->publish(true);
    catalog_.save(*session);
    return session->id();
}

void Imports::progress(std::uint64_t number, std::uint64_t read_bytes, std::uint64_t total_bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = imports_.find(number);
    if (found == imports_.end()) return;
    found->second.read_bytes = read_bytes;
    found->second.total_bytes = total_bytes;
}

std::vector<Imports::Import> Imports::list() const {
    const std::lock_guard lock(mutex_);
    std::vector<Import> all;
    for (auto entry = imports_.rbegin(); entry != imports_.rend(); ++entry) all.push_back(entry->second);
    return all;
}

std::optional<Imports::Import> Imports::find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, import] : imports_)
        if (import.id == id) return import;
    return {};
}

}  // namespace flamewire::server
