// How the flame graph is built and colored.
import { setShape, setView, view } from '../../store/view';
import { comparing } from '../../store/compare';
import { Choice } from '../widgets/Choice';
import { ContrastChoice } from '../functions/DiffBar';
import { Icon } from '../widgets/Icon';
import { Popover } from '../widgets/Popover';

export function ShapeMenu() {
  const v = view.value;
  return (
    <Popover
      id="shape-menu"
      class="button button-plain"
      align="end"
      title="How frames are merged and colored"
      label={
        <>
          <Icon name="sliders" />
          <span>Shape</span>
        </>
      }
    >
      {() => (
        <div class="pop-body shape-body">
          <h4>Frames are one when they have the same</h4>
          <Choice
            label="Frames are merged by"
            value={v.merge}
            options={[
              { value: 'function', text: 'Function' },
              { value: 'line', text: 'Line', title: 'Each line of a function is a frame of its own' },
              { value: 'address', text: 'Address', title: 'Each address is a frame of its own' },
            ]}
            onChoose={(merge) => setShape({ merge })}
          />
          <h4>A function that calls itself</h4>
          <Choice
            label="Recursion"
            value={v.collapse ? 'collapse' : 'keep'}
            options={[
              { value: 'keep', text: 'One frame a call' },
              { value: 'collapse', text: 'One frame' },
            ]}
            onChoose={(choice) => setShape({ collapse: choice === 'collapse' })}
          />
          <h4>Color</h4>
          {comparing.value ? (
            <ContrastChoice />
          ) : (
            <Choice
              label="Color"
              value={v.colouring}
              options={[
                { value: 'kind', text: 'Kind', title: 'User, kernel, JIT, inlined, unknown' },
                { value: 'module', text: 'Module' },
                { value: 'heat', text: 'Heat', title: 'By own weight' },
              ]}
              onChoose={(colouring) => setView({ colouring })}
            />
          )}
        </div>
      )}
    </Popover>
  );
}
