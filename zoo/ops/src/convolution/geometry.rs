//! Geometry of a convolution: stride, dilation and padding along an axis, and the taps that follow
//! from them.

/// Geometry along one axis. Lengths are in positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Distance between two outputs.
    pub stride: usize,
    /// Distance between two taps of the kernel.
    pub dilation: usize,
    /// Zeros before the first and after the last position.
    pub padding: [usize; 2],
}

impl Default for Axis {
    fn default() -> Self {
        Self { stride: 1, dilation: 1, padding: [0, 0] }
    }
}

impl From<[usize; 4]> for Axis {
    /// Stride, dilation, and zeros before and after.
    fn from([stride, dilation, before, behind]: [usize; 4]) -> Self {
        Self { stride, dilation, padding: [before, behind] }
    }
}

impl Axis {
    /// Sets the stride.
    pub fn strided(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    /// Sets the dilation.
    pub fn dilated(self, dilation: usize) -> Self {
        Self { dilation, ..self }
    }

    /// Sets the number of zeros before and after.
    pub fn padded(self, before: usize, behind: usize) -> Self {
        Self { padding: [before, behind], ..self }
    }

    /// Distance between the first and the last tap.
    fn reach(&self, kernel: usize) -> usize {
        self.dilation * kernel.saturating_sub(1)
    }

    /// Half of the kernel's reach on either side: PyTorch's usual padding for odd kernels. Stride 1
    /// then keeps the length.
    pub fn centred(self, kernel: usize) -> Self {
        let half = self.reach(kernel) / 2;
        self.padded(half, half)
    }

    /// Causal padding: an output reads its own position and earlier ones only.
    pub fn causal(self, kernel: usize) -> Self {
        self.padded(self.reach(kernel), 0)
    }

    /// TensorFlow's `SAME` padding for an input of this size: ceil(size / stride) outputs, with an
    /// odd zero at the end.
    pub fn same(self, size: usize, kernel: usize) -> Self {
        let outputs = size.div_ceil(self.stride);
        let zeros = (outputs.saturating_sub(1) * self.stride + self.reach(kernel) + 1).saturating_sub(size);
        self.padded(zeros / 2, zeros - zeros / 2)
    }

    /// Number of outputs for an input of this size; 0 if the kernel is longer than the padded
    /// input.
    pub fn outputs(&self, size: usize, kernel: usize) -> usize {
        let padded = size + self.padding[0] + self.padding[1];
        match padded.checked_sub(self.reach(kernel) + 1) {
            Some(room) => room / self.stride + 1,
            None => 0,
        }
    }
}

/// Geometry of a convolution: height, width, and independent groups of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Height and width.
    pub axes: [Axis; 2],
    /// Number of groups. As many groups as channels make a depthwise convolution.
    pub groups: usize,
}

impl Default for Geometry {
    fn default() -> Self {
        Self { axes: [Axis::default(); 2], groups: 1 }
    }
}

/// Shapes of one convolution.
#[derive(Debug, Clone, Copy)]
pub struct Shapes {
    /// Images, height, width, channels.
    pub input: [usize; 4],
    /// Output channels, input channels of a group, kernel height and width.
    pub weight: [usize; 4],
    /// Images, height, width, channels.
    pub output: [usize; 4],
    pub geometry: Geometry,
}

impl Shapes {
    /// Computes the shapes.
    ///
    /// # Panics
    /// If channels do not fit the groups and the weight, or a stride or dilation is 0.
    pub fn new(input: [usize; 4], weight: [usize; 4], geometry: Geometry) -> Self {
        let [images, height, width, channels] = input;
        let [out, of_group, tall, wide] = weight;
        let groups = geometry.groups;
        assert!(
            groups > 0 && channels == of_group * groups && out.is_multiple_of(groups),
            "{channels} channels in {groups} groups for a weight of {weight:?}"
        );
        assert!(tall > 0 && wide > 0, "a kernel has taps");
        assert!(
            geometry.axes.iter().all(|axis| axis.stride > 0 && axis.dilation > 0),
            "stride, dilation of 0"
        );
        let [rows, columns] = geometry.axes;
        let output = [images, rows.outputs(height, tall), columns.outputs(width, wide), out];
        Self { input, weight, output, geometry }
    }

    /// Number of output positions.
    pub fn positions(&self) -> usize {
        self.output[..3].iter().product()
    }

    /// Number of taps of the kernel.
    pub fn taps(&self) -> usize {
        self.weight[2] * self.weight[3]
    }

    /// Whether every output channel reads exactly one input channel of its own.
    pub fn depthwise(&self) -> bool {
        self.geometry.groups == self.input[3] && self.output[3] == self.input[3] && self.input[3] > 1
    }

    /// The input positions that the outputs read.
    pub fn reads(&self) -> [Taps; 2] {
        [0, 1].map(|i| Taps::of_outputs(&self.geometry.axes[i], self.output[1 + i], self.weight[2 + i]))
    }

    /// The output positions whose gradients the inputs read, for inputs whose position modulo the
    /// stride is `phase`.
    pub fn reads_back(&self, phase: [usize; 2]) -> [Taps; 2] {
        [0, 1]
            .map(|i| Taps::of_inputs(&self.geometry.axes[i], self.input[1 + i], self.weight[2 + i], phase[i]))
    }

    /// All positions modulo the strides.
    pub fn phases(&self) -> impl Iterator<Item = [usize; 2]> {
        let [rows, columns] = self.geometry.axes.map(|axis| axis.stride);
        (0..rows).flat_map(move |i| (0..columns).map(move |j| [i, j]))
    }
}

/// Reads along one axis: position i of `count` reads `i * step + offset` for every tap.
#[derive(Debug, Clone)]
pub struct Taps {
    pub count: usize,
    pub step: usize,
    /// Kernel index and offset, by rising offset.
    pub taps: Vec<(usize, isize)>,
}

impl Taps {
    fn of_outputs(axis: &Axis, outputs: usize, kernel: usize) -> Self {
        let offset = |k: usize| (k * axis.dilation) as isize - axis.padding[0] as isize;
        Self { count: outputs, step: axis.stride, taps: (0..kernel).map(|k| (k, offset(k))).collect() }
    }

    /// Output o reads input y through tap k where y + padding = o * stride + k * dilation. For
    /// inputs `phase + i * stride` these are some of the taps, at outputs `i + offset`.
    fn of_inputs(axis: &Axis, inputs: usize, kernel: usize, phase: usize) -> Self {
        let stride = axis.stride as isize;
        let taps = (0..kernel).rev().filter_map(|k| {
            let place = (phase + axis.padding[0]) as isize - (k * axis.dilation) as isize;
            (place.rem_euclid(stride) == 0).then(|| (k, place.div_euclid(stride)))
        });
        Self { count: inputs.saturating_sub(phase).div_ceil(axis.stride), step: 1, taps: taps.collect() }
    }

    /// Zeros needed before and after `size` positions.
    pub fn zeros(&self, size: usize) -> [usize; 2] {
        let (Some(first), Some(last)) = (self.taps.first(), self.taps.last()) else { return [0, 0] };
        let end = (self.count.saturating_sub(1) * self.step) as isize + last.1 + 1;
        [(-first.1).max(0) as usize, (end - size as isize).max(0) as usize]
    }

    /// Whether the taps read adjacent positions.
    pub fn adjacent(&self) -> bool {
        self.taps.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paddings_of_either_school() {
        // TensorFlow pads 224 by 2 and 3 for a kernel of 7 and stride 2. With stride 1, an even
        // kernel has the odd zero at the end.
        assert_eq!(Axis::default().strided(2).same(224, 7).padding, [2, 3]);
        assert_eq!(Axis::default().same(10, 4).padding, [1, 2]);
        assert_eq!(Axis::default().strided(2).same(224, 1).padding, [0, 0]);
        assert_eq!(Axis::default().dilated(2).centred(29).padding, [28, 28]);
        assert_eq!(Axis::default().dilated(3).causal(3).padding, [6, 0]);
        for (size, stride, kernel) in [(224, 2, 7), (7, 3, 2), (10, 1, 4), (1, 2, 5)] {
            let axis = Axis::default().strided(stride).same(size, kernel);
            assert_eq!(axis.outputs(size, kernel), usize::div_ceil(size, stride));
        }
        assert_eq!(Axis::default().outputs(3, 5), 0);
    }

    #[test]
    fn inputs_read_back_what_outputs_read() {
        for (stride, dilation, kernel, padding) in
            [(1, 1, 3, [1, 1]), (2, 1, 4, [0, 3]), (3, 2, 5, [4, 1]), (2, 2, 3, [1, 0])]
        {
            let axis = Axis { stride, dilation, padding };
            let inputs = 17usize;
            let outputs = axis.outputs(inputs, kernel);
            let mut forward = Vec::new();
            let reads = Taps::of_outputs(&axis, outputs, kernel);
            for o in 0..outputs {
                for (k, offset) in &reads.taps {
                    let y = (o * stride) as isize + offset;
                    if (0..inputs as isize).contains(&y) {
                        forward.push((y as usize, o, *k));
                    }
                }
            }
            let mut back = Vec::new();
            for phase in 0..stride {
                let reads = Taps::of_inputs(&axis, inputs, kernel, phase);
                for i in 0..reads.count {
                    for (k, offset) in &reads.taps {
                        let o = i as isize + offset;
                        if (0..outputs as isize).contains(&o) {
                            back.push((phase + i * stride, o as usize, *k));
                        }
                    }
                }
            }
            forward.sort_unstable();
            back.sort_unstable();
            assert_eq!(forward, back);
        }
    }
}
