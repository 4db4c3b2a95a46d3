#include "agent/capture/capturing_sink.h"

#include "base/varint.h"

namespace flamewire::agent {

Result<bool> CapturingSink::begin(const wire::RecordingId& id) {
    const UseSystem machine(nullptr);
    return sink_.begin(id);
}

Result<bool> CapturingSink::push(wire::Batch& batch, const wire::EventPeriods& periods) {
    const UseSystem machine(nullptr);
    Result<bool> taken = sink_.push(batch, periods);
    std::string result;
    append_varint(result, taken ? (*taken ? 1 : 0) : 2);
    if (!taken) result += taken.error().message;
    (void)capture_.input(inputs::pushed, std::move(result));
    return taken;
}

BatchSink::Backlog CapturingSink::backlog() const {
    const UseSystem machine(nullptr);
    const Backlog backlog = sink_.backlog();
    std::string result;
    append_varint(result, backlog.queue_batches);
    append_varint(result, backlog.spool_bytes);
    (void)capture_.input(inputs::backlog, std::move(result));
    return backlog;
}

}  // namespace flamewire::agent
